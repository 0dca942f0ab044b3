"""An undo that puts a state back never runs over newer work unasked (D23, D35)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from gateway.operations.calls import call
from ledger.core.statuses import StepState
from ledger.queries import get_step, list_events
from manifests_registry.core.snapshot import Snapshot
from reversi_site.kit.transactions import require_no_transaction
from rollback.core.ports import Answer, ReadFailed, Tools, UndoAnswer, UndoCall, Undone, UndoUnknown
from tests.manifests_registry.factories import make_snapshot
from tests.rollback.journal import AGENT, RUN, Ticking, make_run, roll_back, state_of

pytestmark = pytest.mark.usefixtures("db")


class Settings:
    """Named settings with their values; reading one that is not there answers that it does not exist."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.requests: list[UndoCall] = []
        self.is_down = False
        self.loses_answers = False

    @property
    def tools(self) -> Tools:
        return Tools(self, self)

    def can_run(self, tool: str) -> bool:
        return True

    def honours_key(self, tool: str) -> bool:
        return True

    def compensate(self, call: UndoCall) -> UndoAnswer:
        require_no_transaction()
        self.requests.append(call)
        if call.tool == "set.delete":
            self.values.pop(call.args["name"], None)
        else:
            self.values[call.args["name"]] = call.args["value"]
        return UndoUnknown("lost") if self.loses_answers else Undone()

    def can_read(self, tool: str) -> bool:
        return True

    def read(self, tool: str, arguments: Mapping[str, Any], *, timeout_ms: int) -> Answer | ReadFailed:
        return ReadFailed("down") if self.is_down else Answer(self.look(tool, arguments))

    def look(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        name = arguments["name"]
        return {"exists": name in self.values, "value": self.values.get(name)}


def snapshot() -> Snapshot:
    return make_snapshot(
        {"tool": "set.get", "effect": "read_only"},
        {"tool": "set.put", "effect": "idempotent"},
        {"tool": "set.delete", "effect": "idempotent"},
        {
            "tool": "set.write",
            "effect": "reversible",
            "before": {
                "tool": "set.get",
                "arguments": {"name": "$args.name"},
                "absent_when": {"path": "exists", "equals": False},
            },
            "compensation": {
                "tool": "set.put",
                "argument_map": {"name": "$args.name", "value": "$before.value"},
                "when_absent": {"tool": "set.delete", "argument_map": {"name": "$args.name"}},
            },
            "touches": ["setting:{{args.name}}"],
        },
    )


def write(world: Settings, value: str, *, is_observed: bool = True) -> None:
    def execute(arguments: dict[str, Any], key: str | None) -> dict[str, Any]:
        world.values[arguments["name"]] = arguments["value"]
        return {}

    def read(tool: str, arguments: Mapping[str, Any]) -> Any:
        if not is_observed and world.values.get(arguments["name"]) == value:
            raise ConnectionError("the read after the call failed")
        return world.look(tool, arguments)

    call(
        RUN,
        "set.write",
        {"name": "colour", "value": value},
        execute=execute,
        reader=read,
        principal=AGENT,
        snapshot=snapshot(),
        clock=Ticking(),
    )


def prepare(*values: str, first: str | None = "red", **fields: Any) -> Settings:
    world = Settings()
    if first is not None:
        world.values["colour"] = first
    make_run(scope=("*",))
    for value in values:
        write(world, value, **fields)
    return world


@pytest.mark.parametrize("first", ["red", None], ids=["overwritten", "created"])
def test_what_stood_before_is_put_back(first: str | None) -> None:
    world = prepare("green", "blue", first=first)

    report = roll_back(downstream=world)

    assert report.is_complete
    assert world.values == ({} if first is None else {"colour": first})


@pytest.mark.parametrize("newer", ["yellow", None], ids=["changed", "deleted"])
def test_newer_work_is_not_overwritten(newer: str | None) -> None:
    world = prepare("green")
    world.values = {} if newer is None else {"colour": newer}

    report = roll_back(downstream=world)

    assert "changed since" in report.to_json()["failed"][0]["error"]
    assert (world.requests, state_of()) == ([], StepState.SUCCEEDED)


def test_newer_work_is_overwritten_when_the_operator_says_so() -> None:
    world = prepare("green")
    world.values["colour"] = "yellow"

    report = roll_back(downstream=world, is_overwrite_allowed=True)

    assert report.is_complete
    assert world.requests[0].is_overwrite_allowed
    assert world.requests[0].to_json()["overwrite"] is True
    assert world.values == {"colour": "red"}
    kinds = [event.kind for event in list_events(RUN)]
    assert kinds.index("overwriting") < kinds.index("compensating")


def test_nothing_is_called_overwritten_where_nothing_newer_stands() -> None:
    world = prepare("green")

    roll_back(downstream=world, is_overwrite_allowed=True)

    assert "overwriting" not in [event.kind for event in list_events(RUN)]


def test_newer_work_holds_what_is_beneath_it_too() -> None:
    world = prepare("green", "blue")
    world.values["colour"] = "yellow"

    data = roll_back(downstream=world).to_json()

    assert data["deferred"] == [{"step": 0, "blocked_by": [1]}]
    assert world.requests == []


def test_what_cannot_be_read_is_not_overwritten() -> None:
    world = prepare("green")
    world.is_down = True

    report = roll_back(downstream=world)

    assert "set.get did not answer (down)" in report.to_json()["failed"][0]["error"]
    assert world.requests == []


def test_a_state_that_nobody_read_after_the_call_is_unknown_and_no_obstacle() -> None:
    world = prepare("green", is_observed=False)
    world.values["colour"] = "yellow"

    assert roll_back(downstream=world).is_complete


def test_without_a_reader_there_is_nothing_to_compare() -> None:
    world = prepare("green")
    world.values["colour"] = "yellow"

    report = roll_back(downstream=world, tools=Tools(world))

    assert report.is_complete


def test_an_undo_is_not_taken_for_newer_work_when_it_is_repeated() -> None:
    world = prepare("green")
    world.loses_answers = True
    roll_back(downstream=world)
    world.loses_answers = False

    report = roll_back(downstream=world)

    assert get_step(RUN, 0).state is StepState.COMPENSATED
    assert report.is_complete


@pytest.mark.parametrize("newer", ["yellow", "green", "red"])
def test_newer_work_is_told_from_an_undo_that_was_lost(newer: str) -> None:
    world = prepare("green")
    world.loses_answers, undo = True, world.compensate
    world.compensate = lambda call: UndoUnknown("lost before it took effect")  # type: ignore[method-assign]
    roll_back(downstream=world)
    world.loses_answers, world.compensate = False, undo  # type: ignore[method-assign]
    world.values["colour"] = newer

    report = roll_back(downstream=world)

    assert report.is_complete is (newer != "yellow")
    assert world.values["colour"] == ("yellow" if newer == "yellow" else "red")


@pytest.mark.parametrize(
    "said", ["a\0b", "\ud800", "\x1b[2J", "x" * 100_000], ids=["nul", "surrogate", "escape", "long"]
)
def test_what_a_reader_says_can_be_stored_and_shown(said: str) -> None:
    world = prepare("green")
    world.read = lambda tool, arguments, timeout_ms: ReadFailed(said)  # type: ignore[method-assign, misc]

    error = roll_back(downstream=world).to_json()["failed"][0]["error"]

    assert "set.get did not answer" in error
    assert len(error) < 3000
    assert error.isprintable()
