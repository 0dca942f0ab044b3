"""Making a call from asynchronous code: whatever ends the waiting, the journal says what is known."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

import anyio
import pytest
from django.db import connection

from approvals.core.errors import CallBlocked
from approvals.operations.calls import Begun
from gateway.journal import Journal, JournalClosed, JournalLate
from gateway.mcp.calls import AsyncExecute, CallerGaveUp, CallFailed, CallRequest, CallResult, make_call
from ledger.core.handles import BeforeRead, Handle
from ledger.core.statuses import StepState
from ledger.core.values import StepRecord
from ledger.queries import list_steps
from reversi_sdk.errors import EffectUncertainError, ToolError
from tests.approvals.factories import ARGS, PRINCIPAL, kinds, make_run
from tests.databases import Database
from tests.gateway.factories import SteppingClock
from tests.gateway.gates import Gate, GatedClock
from tests.gateway.operations.test_calls import harmless, restoring
from tests.manifests_registry.factories import shop


class Order:
    """A tool that answers, or raises, what it was given, in turn; the last answer stays."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.sent: list[tuple[Mapping[str, Any], str | None, Begun]] = []

    async def __call__(self, args: dict[str, Any], key: str | None, begun: Begun) -> Any:
        self.sent.append((dict(args), key, begun))
        args.clear()
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        await anyio.lowlevel.checkpoint()
        if isinstance(answer, BaseException):
            raise answer
        return answer


def request(*, run_id: str, **fields: Any) -> CallRequest:
    usual: dict[str, Any] = {"principal": PRINCIPAL, "tool": "shop.order", "args": ARGS, "snapshot": shop()}
    return CallRequest(run_id=run_id, **{**usual, **fields})


def place(call: CallRequest, *, execute: AsyncExecute, **fields: Any) -> CallResult:
    async def main() -> CallResult:
        async with Journal.open() as journal:
            return await make_call(journal, call, execute=execute, **{"clock": SteppingClock(), **fields})

    return anyio.run(main)


def only_step(run_id: str) -> StepRecord:
    (step,) = list_steps(run_id)
    return step


def test_call_records_what_the_tool_returned(db: Database) -> None:
    run, tool = make_run(), Order({"id": "o1"})

    called = place(request(run_id=run.id, reason="invoice 12"), execute=tool)

    assert (called.result, called.state, called.step.observed_by) == ({"id": "o1"}, StepState.SUCCEEDED, "gateway")
    assert [(args, key, begun.step.number) for args, key, begun in tool.sent] == [(ARGS, None, 0)]
    assert called.manifest is not None
    assert kinds(run.id) == ["opened", "intended", "succeeded"]


def test_call_is_announced_before_the_tool_runs(db: Database) -> None:
    run = make_run()
    raw = db.raw()

    async def look(args: Mapping[str, Any], key: str | None, begun: Begun) -> Any:
        return raw.execute("SELECT state FROM ledger_step").fetchall()

    assert [state for (state,) in place(request(run_id=run.id), execute=look).result] == ["intended"]


ENDINGS: dict[str, tuple[Exception, StepState, str]] = {
    "declined": (ToolError("card declined"), StepState.FAILED, "card declined"),
    "bug": (KeyError("id"), StepState.FAILED, "KeyError: 'id'"),
    "lost": (EffectUncertainError("no answer after the send"), StepState.UNCERTAIN, "no answer after the send"),
    "timed out": (TimeoutError("60 s"), StepState.UNCERTAIN, "TimeoutError: 60 s"),
}


@pytest.mark.parametrize("case", ENDINGS)
def test_call_that_failed_carries_its_step_and_what_the_tool_raised(db: Database, case: str) -> None:
    error, state, text = ENDINGS[case]
    run = make_run()

    with pytest.raises(CallFailed) as caught:
        place(request(run_id=run.id), execute=Order(error))

    failed = caught.value
    assert failed.cause is error is failed.__cause__
    assert failed.step == only_step(run.id)
    assert (failed.step.state, failed.step.error) == (state, text)
    assert failed.notes == (f"step 0 of run {run.id} is {state}",)
    assert (failed.idempotency_key, failed.violations, failed.manifest is None) == (None, (), False)


def test_call_that_is_blocked_never_runs(db: Database) -> None:
    run, tool = make_run(scope=()), Order({"id": "o1"})

    with pytest.raises(CallBlocked):
        place(request(run_id=run.id), execute=tool)

    assert tool.sent == []
    assert kinds(run.id) == ["opened", "blocked"]


def test_call_is_repeated_where_it_is_harmless(db: Database) -> None:
    run, clock = make_run(), SteppingClock()
    tool = Order(TimeoutError(), TimeoutError(), {"id": "o1"})

    async def sleep(seconds: float) -> None:
        clock.sleep(seconds)

    called = place(request(run_id=run.id, snapshot=harmless()), execute=tool, clock=clock, sleep=sleep)

    assert called.state is StepState.SUCCEEDED
    assert [args for args, _, _ in tool.sent] == [ARGS] * 3
    assert clock.slept == [0.1, 0.2]


def test_call_without_anybody_who_reads_is_refused(db: Database) -> None:
    with pytest.raises(CallBlocked, match=r"nothing can run shop\.get"):
        place(request(run_id=make_run().id, snapshot=restoring()), execute=Order({"id": "o1"}))


class Shelf:
    """A reader and a tool that come through a gate; the journal's threads do so through its clock."""

    def __init__(self, gate: Gate) -> None:
        self.gate, self.price, self.sends = gate, 7, 0

    async def read(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        await self.gate.pass_in_loop("read before" if self.price == 7 else "read after")
        return {"price": self.price}

    async def order(self, args: Mapping[str, Any], key: str | None, begun: Begun) -> dict[str, Any]:
        self.sends += 1
        self.price = 9
        await self.gate.pass_in_loop("send")
        return {"id": "o1"}


GiveUp = Callable[[Gate, Callable[[], Coroutine[Any, Any, object]]], Awaitable[None]]


async def cancel_scope(gate: Gate, call: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Cancel the scope in which the call is awaited, as a server does for a client that gave up."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await gate.reached()
        tasks.cancel_scope.cancel()
        gate.open()


async def cancel_task(gate: Gate, call: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Cancel the task itself, and once more, as the end of a loop does."""
    task = asyncio.ensure_future(call())
    await gate.reached()
    task.cancel()
    await anyio.lowlevel.checkpoint()
    task.cancel()
    gate.open()
    with pytest.raises(asyncio.CancelledError):
        await task


WAYS: dict[str, GiveUp] = {"scope": cancel_scope, "task": cancel_task}
GIVEN_UP: dict[str, tuple[int, list[str], StepState | None, str | None]] = {
    "write 1": (0, ["opened"], None, None),
    "read before": (0, ["opened"], None, None),
    "write 2": (0, ["opened", "intended", "failed"], StepState.FAILED, "not sent: the caller gave up"),
    "send": (1, ["opened", "intended", "uncertain"], StepState.UNCERTAIN, "the caller gave up"),
    "read after": (1, ["opened", "intended", "succeeded"], StepState.SUCCEEDED, None),
    "write 3": (1, ["opened", "intended", "succeeded"], StepState.SUCCEEDED, None),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("at", GIVEN_UP)
def test_call_whose_caller_gave_up_leaves_no_step_open(db: Database, at: str, way: str) -> None:
    sends, events, state, text = GIVEN_UP[at]
    run = make_run()

    async def main() -> int:
        gate = Gate(at)
        shelf = Shelf(gate)
        async with Journal.open() as journal:

            async def call() -> object:
                wanted = request(run_id=run.id, snapshot=restoring())
                return await make_call(journal, wanted, execute=shelf.order, reader=shelf.read, clock=GatedClock(gate))

            await WAYS[way](gate, call)
        return shelf.sends

    assert anyio.run(main) == sends
    assert kinds(run.id) == events
    assert [(step.state, step.error) for step in list_steps(run.id)] == ([] if state is None else [(state, text)])


def test_call_given_up_after_its_answer_keeps_what_it_read_before(db: Database) -> None:
    run = make_run()

    async def main() -> None:
        gate = Gate("read after")
        shelf = Shelf(gate)
        async with Journal.open() as journal:
            wanted = request(run_id=run.id, snapshot=restoring())
            await cancel_scope(gate, lambda: make_call(journal, wanted, execute=shelf.order, reader=shelf.read))

    anyio.run(main)

    handle = only_step(run.id).handle
    assert isinstance(handle, Handle)
    assert (handle.before, handle.values["$before.price"], handle.after) == (BeforeRead.FOUND, 7, None)


class Busy(ToolError):
    status = 429


PAUSES: dict[str, tuple[Exception, StepState]] = {
    "lost": (TimeoutError(), StepState.UNCERTAIN),
    "refused": (Busy("busy"), StepState.FAILED),
}


@pytest.mark.parametrize("case", PAUSES)
def test_call_given_up_between_two_sends_says_what_the_first_one_left(db: Database, case: str) -> None:
    error, state = PAUSES[case]
    run, tool = make_run(), Order(error)

    async def main() -> None:
        gate = Gate("pause")
        async with Journal.open() as journal:
            wanted = request(run_id=run.id, snapshot=harmless())

            async def sleep(seconds: float) -> None:
                await gate.pass_in_loop("pause")

            await cancel_scope(
                gate, lambda: make_call(journal, wanted, execute=tool, sleep=sleep, clock=SteppingClock())
            )

    anyio.run(main)

    assert len(tool.sent) == 1
    assert (only_step(run.id).state, only_step(run.id).error) == (state, "not sent again: the caller gave up")


def test_call_given_up_while_the_tool_had_sent_nothing_failed(db: Database) -> None:
    run = make_run()

    async def main() -> None:
        gate = Gate("connect")

        async def connect(args: Mapping[str, Any], key: str | None, begun: Begun) -> None:
            try:
                await gate.pass_in_loop("connect")
            except asyncio.CancelledError as interruption:
                raise CallerGaveUp(interruption, was_sent=False) from None

        async with Journal.open() as journal:
            await cancel_scope(gate, lambda: make_call(journal, request(run_id=run.id), execute=connect))

    anyio.run(main)

    assert (only_step(run.id).state, only_step(run.id).error) == (StepState.FAILED, "not sent: the caller gave up")


def test_call_in_a_scope_that_is_cancelled_already_writes_nothing(db: Database) -> None:
    run, tool = make_run(), Order({"id": "o1"})

    async def main() -> bool:
        async with Journal.open() as journal:
            with anyio.CancelScope() as scope:
                scope.cancel()
                await make_call(journal, request(run_id=run.id), execute=tool)
        return scope.cancelled_caught

    assert anyio.run(main)
    assert (tool.sent, kinds(run.id)) == ([], ["opened"])


def test_call_that_the_journal_took_down_too_late_is_not_sent_and_failed(db: Database) -> None:
    run, tool = make_run(), Order({"id": "o1"})

    async def main() -> None:
        gate = Gate("write 1")
        async with Journal.open(deadline_s=0.5) as journal:
            try:
                await make_call(journal, request(run_id=run.id), execute=tool, clock=GatedClock(gate))
            finally:
                gate.open()

    with pytest.raises(JournalLate):
        anyio.run(main)

    assert tool.sent == []
    step = only_step(run.id)
    assert (step.state, step.error) == (StepState.FAILED, "not sent: the journal took the call down too late")


def test_call_after_the_journal_was_closed_is_refused(db: Database) -> None:
    run, tool = make_run(), Order({"id": "o1"})

    async def main() -> None:
        async with Journal.open() as journal:
            await anyio.lowlevel.checkpoint()
        await make_call(journal, request(run_id=run.id), execute=tool)

    with pytest.raises(JournalClosed):
        anyio.run(main)

    assert tool.sent == []


def fill_the_store(db: Database) -> None:
    db.raw().execute("CREATE TRIGGER full BEFORE UPDATE ON ledger_run BEGIN SELECT RAISE(ABORT, 'full'); END")


def test_call_whose_success_cannot_be_recorded_gives_the_result_and_claims_nothing(sqlite_db: Database) -> None:
    run = make_run()

    async def order(args: Mapping[str, Any], key: str | None, begun: Begun) -> dict[str, str]:
        fill_the_store(sqlite_db)
        return {"id": "o1"}

    called = place(request(run_id=run.id), execute=order)

    assert (called.result, called.state) == ({"id": "o1"}, StepState.INTENDED)
    assert called.notes == (f"the outcome of step 0 of run {run.id} could not be recorded: full",)


def test_call_whose_failure_cannot_be_recorded_claims_nothing(sqlite_db: Database) -> None:
    run = make_run()

    async def decline(args: Mapping[str, Any], key: str | None, begun: Begun) -> None:
        fill_the_store(sqlite_db)
        raise ToolError("declined")

    with pytest.raises(CallFailed, match="declined") as caught:
        place(request(run_id=run.id), execute=decline)

    assert caught.value.step.state is StepState.INTENDED
    assert caught.value.notes == (f"the outcome of step 0 of run {run.id} could not be recorded: full",)


def test_calls_at_once_in_one_run_are_all_recorded(db: Database) -> None:
    run, numbers = make_run(), list[int]()

    async def main() -> None:
        async with Journal.open() as journal, anyio.create_task_group() as tasks:

            async def call(item: int) -> None:
                wanted = request(run_id=run.id, args={**ARGS, "item": f"book {item}"})
                called = await make_call(journal, wanted, execute=Order({"id": f"o{item}"}))
                numbers.append(called.step.number)

            for item in range(20):
                tasks.start_soon(call, item)

    anyio.run(main)

    assert sorted(numbers) == list(range(20))
    assert {step.state for step in list_steps(run.id)} == {StepState.SUCCEEDED}
    assert connection.in_atomic_block is False
