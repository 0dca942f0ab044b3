"""Undos and reads that go to the very upstream their step's call went to, and say what became of them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import pytest

from gateway.core.upstream_errors import (
    UpstreamAnswerLost,
    UpstreamInternalError,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnavailable,
)
from gateway.executors import Reached, UpstreamExecutor, UpstreamReader
from rollback.core.ports import (
    NO_TOOLS,
    Answer,
    ReadFailed,
    ToolExecutor,
    UndoAnswer,
    UndoCall,
    UndoFailed,
    Undone,
    UndoNotRun,
    UndoUnknown,
)

T = TypeVar("T")
FINE: dict[str, Any] = {"content": [{"type": "text", "text": "ok"}]}


class Server:
    """Upstreams that list tools and answer as they are told, and keep what they were called with."""

    def __init__(self, *, schema: Mapping[str, Any] | None = None, answer: Any = None, trouble: Any = None) -> None:
        self.schema, self.trouble = schema or {"type": "object"}, trouble
        self.answer: Any = FINE if answer is None else answer
        self.calls: list[tuple[str, str, Mapping[str, Any], str | None, Mapping[str, Any] | None]] = []

    async def offered_by(self, upstream: str, tool: str) -> Mapping[str, Any] | None:
        if self.trouble is not None:
            raise self.trouble
        return {"name": tool, "inputSchema": self.schema} if tool.startswith("shop.") else None

    async def count_tools(self, upstream: str) -> int:
        return 1

    async def call_at(
        self,
        upstream: str,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        timeout_ms: int,
        idempotency_key: str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        self.calls.append((upstream, tool, dict(arguments), idempotency_key, meta))
        if isinstance(self.answer, Exception):
            raise self.answer
        return dict(self.answer)

    def ask(self, question: Callable[[Reached], Awaitable[T]], *, within_s: float) -> T:
        async def answer() -> T:
            return await question(self)

        return asyncio.run(answer())


class Deaf(Server):
    def ask(self, question: Callable[[Reached], Awaitable[T]], *, within_s: float) -> T:
        raise TimeoutError


class Behind:
    """A connector that offers one tool."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def can_run(self, tool: str) -> bool:
        return tool == "fs.remove_file"

    def honours_key(self, tool: str) -> bool:
        return tool == "fs.remove_file"

    def compensate(self, call: UndoCall) -> UndoAnswer:
        self.calls.append(call.tool)
        return Undone()


def undo(*, tool: str = "shop.cancel", **fields: Any) -> UndoCall:
    usual: dict[str, Any] = {
        "run_id": "run_v",
        "step": 0,
        "tool": tool,
        "original_tool": "shop.order",
        "args": {"id": "o1"},
        "idempotency_key": "key-1",
        "timeout_ms": 5000,
    }
    return UndoCall(**{**usual, **fields})


def executor(server: Server, *, behind: ToolExecutor | None = None, **fields: Any) -> UpstreamExecutor:
    return UpstreamExecutor("shop-a1", server, NO_TOOLS.executor if behind is None else behind, **fields)


def test_an_undo_goes_to_its_upstream_with_its_key() -> None:
    server = Server()

    answer = executor(server).compensate(undo())

    assert answer == Undone()
    assert server.calls == [("shop-a1", "shop.cancel", {"id": "o1"}, "key-1", None)]


def test_an_undo_that_may_overwrite_says_so() -> None:
    server = Server()

    executor(server).compensate(undo(is_overwrite_allowed=True))

    assert server.calls[0][4] == {"reversi/overwrite": True}


REQUIRED = ["id", "confirm", "sure", "maybe"]
BOOLEAN = {"type": "boolean"}
SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "confirm": BOOLEAN,
        "sure": {"const": True},
        "maybe": BOOLEAN,
        "idempotency_key": {"type": "string"},
    },
}


def test_the_key_and_required_confirmations_are_filled_in() -> None:
    server = Server(schema={**SCHEMA, "required": REQUIRED})

    executor(server).compensate(undo(args={"id": "o1", "maybe": False}))

    filled = {"id": "o1", "maybe": False, "confirm": True, "sure": True, "idempotency_key": "key-1"}
    assert server.calls[0][2] == filled


def test_a_confirmation_that_is_not_required_is_left_alone() -> None:
    server = Server(schema=SCHEMA)

    executor(server).compensate(undo())

    assert server.calls[0][2] == {"id": "o1", "idempotency_key": "key-1"}


@pytest.mark.parametrize(
    ("schema", "honours"), [({"type": "object"}, False), (SCHEMA, True), ({"properties": 3}, False)]
)
def test_only_an_argument_for_the_key_makes_a_repeat_harmless(schema: Mapping[str, Any], honours: bool) -> None:
    assert executor(Server(schema=schema)).honours_key("shop.cancel") is honours


def test_whoever_cannot_be_asked_honours_nothing() -> None:
    assert executor(Server(trouble=UpstreamUnavailable("shop-a1", "is down"))).honours_key("shop.cancel") is False
    assert executor(Deaf()).honours_key("shop.cancel") is False


def error(text: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": True, **more}


ENDINGS: dict[str, tuple[Any, UndoAnswer]] = {
    "done": (FINE, Undone()),
    "the tool says no": (error("no such order"), UndoFailed("no such order")),
    "the tool does not know": (
        error("the answer got lost", _meta={"reversi/outcome": "uncertain"}),
        UndoUnknown("the answer got lost"),
    ),
    "refused": (UpstreamRefused("s", -32602, "bad arguments"), UndoNotRun("bad arguments")),
    "down": (UpstreamUnavailable("s", "is down"), UndoNotRun("nothing was sent: the upstream s is down")),
    "broken": (
        UpstreamInternalError("s", -32603, "oops"),
        UndoUnknown("the upstream s failed while it worked: oops"),
    ),
    "lost": (UpstreamAnswerLost("s", "died"), UndoUnknown("the upstream s died before it answered")),
    "late": (UpstreamTimeout("s", 1500), UndoUnknown("the upstream s did not answer within 1.5 s")),
    "a bug of ours": (KeyError("x"), UndoUnknown("KeyError: 'x'")),
}


@pytest.mark.parametrize("case", ENDINGS)
def test_an_undo_ends_as_its_upstream_says(case: str) -> None:
    answer, expected = ENDINGS[case]

    assert executor(Server(answer=answer)).compensate(undo()) == expected


def test_an_upstream_that_cannot_be_asked_was_sent_nothing() -> None:
    server = Server(trouble=UpstreamUnavailable("shop-a1", "exited with code 1"))

    answer = executor(server).compensate(undo())

    assert answer == UndoNotRun("nothing was sent: the upstream shop-a1 exited with code 1")
    assert isinstance(executor(Deaf()).compensate(undo()), UndoNotRun)
    assert server.calls == []


def test_what_the_upstream_does_not_offer_goes_to_who_stands_behind() -> None:
    server, behind = Server(), Behind()

    answer = executor(server, behind=behind).compensate(undo(tool="fs.remove_file"))

    assert (answer, behind.calls, server.calls) == (Undone(), ["fs.remove_file"], [])


def test_what_nobody_offers_is_sent_to_nobody() -> None:
    server = Server()

    answer = executor(server).compensate(undo(tool="crm.delete"))

    assert answer == UndoNotRun("nothing was sent: the upstream shop-a1 does not offer crm.delete")
    assert server.calls == []


@pytest.mark.parametrize(
    ("tools", "tool", "can"),
    [
        (None, "anything", True),
        (frozenset({"shop.cancel"}), "shop.cancel", True),
        (frozenset({"shop.cancel"}), "shop.refund", False),
        (frozenset({"shop.cancel"}), "fs.remove_file", True),
    ],
    ids=["unseen", "listed", "not listed", "behind"],
)
def test_what_can_run_is_told_without_asking(tools: frozenset[str] | None, tool: str, can: bool) -> None:
    server = Server(trouble=AssertionError("asked"))

    assert executor(server, behind=Behind(), tools=tools).can_run(tool) is can


def test_a_read_goes_to_its_upstream_and_returns_the_value() -> None:
    server = Server(answer={"content": [], "structuredContent": {"state": "gone"}})

    answer = UpstreamReader("shop-a1", server, None).read("shop.get", {"id": "o1"}, timeout_ms=5000)

    assert answer == Answer({"state": "gone"})
    assert server.calls == [("shop-a1", "shop.get", {"id": "o1"}, None, None)]


@pytest.mark.parametrize(
    ("answer", "words"),
    [(error("not found"), "not found"), (UpstreamTimeout("s", 1000), "did not answer"), (ValueError(), "ValueError")],
    ids=["error", "late", "bug"],
)
def test_a_read_that_brings_no_value_has_failed(answer: Any, words: str) -> None:
    failed = UpstreamReader("shop-a1", Server(answer=answer), None).read("shop.get", {}, timeout_ms=5000)

    assert isinstance(failed, ReadFailed)
    assert words in failed.error


def test_nobody_reads_through_what_nobody_offers() -> None:
    reader = UpstreamReader("shop-a1", Server(), None, frozenset({"shop.get"}))

    assert (reader.can_read("shop.get"), reader.can_read("fs.stat")) == (True, False)
    assert reader.read("fs.stat", {}, timeout_ms=5000) == ReadFailed("the upstream shop-a1 does not offer fs.stat")
