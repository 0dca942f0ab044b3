"""Undoing and reading through connectors in this process, and through several doors at once (D27)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from connectors.core.connector import Connector, ConnectorSpec
from connectors.core.fields import Field, FieldKind
from connectors.core.tool import CallContext, KeyCarrierRow, Tool
from reversi_sdk.errors import EffectUncertainError, ToolError
from reversi_sdk.model import Effect
from rollback.core.ports import NO_TOOLS, Answer, ReadFailed, UndoCall, UndoFailed, Undone, UndoNotRun, UndoUnknown
from rollback.executors.combined import CombinedExecutor, CombinedReader
from rollback.executors.connector import ConnectorExecutor, ConnectorReader


def row(name: str, run: Any, **fields: Any) -> Tool:
    usual: dict[str, Any] = {
        "effect": Effect.IDEMPOTENT,
        "permission": "box:write",
        "description": "A tool.",
        "inputs": {},
        "summary": "Use the box",
    }
    return Tool(name=name, run=run, **{**usual, **fields})


def raising(error: BaseException) -> Any:
    def run(state: Any, arguments: Mapping[str, Any], context: CallContext) -> Any:
        raise error

    return run


def box(*rows: Tool) -> Connector:
    return ConnectorSpec("box", rows).bind(None)


def make_call(**fields: Any) -> UndoCall:
    usual: dict[str, Any] = {
        "run_id": "run_v",
        "step": 0,
        "tool": "box.undo",
        "original_tool": "box.do",
        "args": {},
        "idempotency_key": "k1",
        "timeout_ms": 1000,
    }
    return UndoCall(**{**usual, **fields})


def test_a_required_confirmation_is_given_and_none_is_made_up() -> None:
    got: list[Mapping[str, Any]] = []

    def run(state: Any, arguments: Mapping[str, Any], context: CallContext) -> None:
        got.append(arguments)

    confirm = Field(FieldKind.BOOLEAN, "Whether to go on.")
    offered = {"confirm": Field(FieldKind.BOOLEAN, "Whether to go on.", is_required=False)}
    connector = box(row("box.undo", run, inputs={"confirm": confirm}), row("box.other", run, inputs=offered))

    answers = [ConnectorExecutor(connector).compensate(make_call(tool=tool)) for tool in ("box.undo", "box.other")]

    assert answers == [Undone(), Undone()]
    assert got == [{"confirm": True}, {}]


@pytest.mark.parametrize(
    ("run", "answer"),
    [
        (lambda state, arguments, context: {"any": "thing"}, Undone()),
        (raising(ToolError("not there")), UndoFailed("not there")),
        (raising(EffectUncertainError("502")), UndoUnknown("502")),
    ],
    ids=["undone", "failed", "uncertain"],
)
def test_compensate_reads_the_three_outcomes(run: Any, answer: Any) -> None:
    assert ConnectorExecutor(box(row("box.undo", run))).compensate(make_call()) == answer


@pytest.mark.parametrize("error", [TimeoutError(), ConnectionError("reset"), ZeroDivisionError("a bug")])
def test_compensate_leaves_everything_else_in_doubt(error: Exception) -> None:
    answer = ConnectorExecutor(box(row("box.undo", raising(error)))).compensate(make_call())

    assert isinstance(answer, UndoUnknown)


def test_compensate_lets_the_end_of_the_process_through() -> None:
    with pytest.raises(KeyboardInterrupt):
        ConnectorExecutor(box(row("box.undo", raising(KeyboardInterrupt())))).compensate(make_call())


def test_compensate_passes_key_time_and_leave_to_overwrite() -> None:
    seen: list[CallContext] = []
    executor = ConnectorExecutor(box(row("box.undo", lambda state, arguments, context: seen.append(context))))

    executor.compensate(make_call(is_overwrite_allowed=True))

    assert seen == [CallContext(idempotency_key="k1", is_overwrite_allowed=True, timeout_ms=1000)]


@pytest.mark.parametrize("is_required", [True, False])
def test_compensate_gives_the_confirmation_that_a_tool_requires(is_required: bool) -> None:
    seen: list[Any] = []
    confirm = Field(FieldKind.BOOLEAN, "Really.", is_required=is_required)
    undo = row("box.undo", lambda state, arguments, context: seen.append(arguments), inputs={"confirm": confirm})

    ConnectorExecutor(box(undo)).compensate(make_call())

    assert [arguments.get("confirm") for arguments in seen] == [True if is_required else None]


@pytest.mark.parametrize(
    ("fields", "honours"),
    [
        ({}, False),
        ({"key_carrier": KeyCarrierRow()}, True),
        ({"inputs": {"idempotency_key": Field(FieldKind.STRING, "The key.")}}, True),
    ],
    ids=["none", "carrier", "input"],
)
def test_honours_key_as_the_row_says(fields: Any, honours: bool) -> None:
    executor = ConnectorExecutor(box(row("box.undo", None, **fields)))

    assert executor.honours_key("box.undo") is honours
    assert executor.honours_key("other.undo") is False


def test_read_answers_or_says_why_not() -> None:
    reader = ConnectorReader(
        box(
            row("box.get", lambda state, arguments, context: {"a": 1}, effect=Effect.READ_ONLY),
            row("box.bad", raising(ToolError("not there")), effect=Effect.READ_ONLY),
        )
    )

    assert reader.read("box.get", {}, timeout_ms=1) == Answer({"a": 1})
    assert reader.read("box.bad", {}, timeout_ms=1) == ReadFailed("not there")


def test_read_never_uses_a_tool_that_changes_something() -> None:
    reader = ConnectorReader(box(row("box.undo", None)))

    assert not reader.can_read("box.undo")


def test_combined_asks_the_first_that_can() -> None:
    one = ConnectorExecutor(box(row("box.undo", raising(ToolError("one")))))
    two = ConnectorExecutor(
        box(row("box.undo", raising(ToolError("two")), key_carrier=KeyCarrierRow()), row("box.more", None))
    )
    both = CombinedExecutor(one, two)

    assert both.compensate(make_call()) == UndoFailed("one")
    assert (both.can_run("box.more"), both.can_run("box.none")) == (True, False)
    assert both.honours_key("box.undo") is False


def test_combined_readers_ask_the_first_that_can() -> None:
    reader = CombinedReader(
        ConnectorReader(box()),
        ConnectorReader(box(row("box.get", lambda state, arguments, context: 1, effect=Effect.READ_ONLY))),
    )

    assert reader.read("box.get", {}, timeout_ms=1) == Answer(1)
    assert (reader.can_read("box.get"), reader.can_read("box.none")) == (True, False)


def test_nobody_runs_or_reads_anything() -> None:
    call = make_call()

    assert NO_TOOLS.executor.compensate(call) == UndoNotRun("nothing can run box.undo")
    assert CombinedExecutor().compensate(call) == UndoNotRun("nothing can run box.undo")
    assert CombinedReader().read("box.get", {}, timeout_ms=1) == ReadFailed("nothing can read box.get")
    assert (NO_TOOLS.executor.can_run("t"), NO_TOOLS.executor.honours_key("t"), NO_TOOLS.can_read("t")) == (False,) * 3
