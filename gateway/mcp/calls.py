"""Make a call from asynchronous code: the same course as `gateway.operations.calls`, every write through the journal.

    try:
        called = await make_call(journal, request, execute=execute, reader=reader)
    except CallFailed as failed:
        failed.step, failed.cause

`make_call` returns a `CallResult` and raises

- what begin_call raises (CallBlocked, ApprovalRequired, RunClosed, …), JournalLate and JournalClosed as they are: there
  is no step, and nothing was sent;
- `CallFailed` when `execute` raised: `cause` is what it raised, `step` the step as the journal holds it (`failed` or
  `uncertain`; `intended` where that could not be recorded, and the last of `notes` says so);
- the cancellation itself when the caller gave up, once the step is settled: `uncertain` when the call may have been
  sent, `failed` when it was not, `succeeded` when its answer was already there.

`execute` may raise `CallerGaveUp(cancelled, was_sent=False)` in the place of a cancellation that came while it had sent
nothing yet, such as when it waited for a connection; a cancellation as it is leaves the outcome unknown.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, assert_never

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from approvals.core.violations import Violation
from approvals.operations.calls import Begun
from gateway.journal import Journal
from gateway.operations.calls import announce, no_reader, record
from gateway.operations.conversation import (
    Act,
    Begin,
    CallEnded,
    CallerGaveUp,
    CallRequest,
    CallResult,
    Complete,
    Conversation,
    Read,
    Send,
    Wait,
)
from ledger.core.statuses import StepState
from ledger.core.values import StepRecord
from reversi_sdk.model import Manifest
from reversi_site.kit.clock import Clock, SystemClock

__all__ = ["AsyncExecute", "AsyncReader", "CallFailed", "CallRequest", "CallResult", "CallerGaveUp", "make_call"]

AsyncExecute = Callable[[dict[str, Any], str | None, Begun], Awaitable[Any]]
AsyncReader = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
Sleep = Callable[[float], Awaitable[None]]

TOO_LATE = "not sent: the journal took the call down too late"


class CallFailed(Exception):
    """A call that has a step ended with an error; `cause` is what the tool's function raised."""

    def __init__(self, ended: CallEnded) -> None:
        super().__init__(str(ended.error) or type(ended.error).__name__)
        self._ended = ended

    @property
    def cause(self) -> BaseException:
        """What the tool's function raised."""
        return self._ended.error

    @property
    def step(self) -> StepRecord:
        """The step as the journal holds it."""
        return self._ended.step

    @property
    def idempotency_key(self) -> str | None:
        """The key that went with the call."""
        return self._ended.idempotency_key

    @property
    def notes(self) -> tuple[str, ...]:
        """What the gate noted, and where the step stands."""
        return self._ended.notes

    @property
    def violations(self) -> tuple[Violation, ...]:
        """What was only observed."""
        return self._ended.violations

    @property
    def manifest(self) -> Manifest | None:
        """The manifest that the call was made under."""
        return self._ended.manifest


async def make_call(
    journal: Journal,
    request: CallRequest,
    *,
    execute: AsyncExecute,
    reader: AsyncReader | None = None,
    clock: Clock | None = None,
    sleep: Sleep = anyio.sleep,
) -> CallResult:
    """Make one call of a run's agent and journal it; the module says what it raises.

    `execute` gets the arguments, the key to send (None where the tool carries none) and the call as it was announced.
    """
    clock = clock if clock is not None else SystemClock()
    driver = _Driver(
        journal=journal,
        conversation=Conversation(request, clock=clock),
        execute=execute,
        reader=reader or _no_reader,
        clock=clock,
        sleep=sleep,
    )
    # In a task of its own: a task that is cancelled by other means than a scope ignores shields, this one's are kept.
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(driver.run)
    return driver.ending()


class _Driver:
    """Does the acts of one conversation."""

    def __init__(
        self,
        *,
        journal: Journal,
        conversation: Conversation,
        execute: AsyncExecute,
        reader: AsyncReader,
        clock: Clock,
        sleep: Sleep,
    ) -> None:
        self._journal, self._conversation = journal, conversation
        self._execute, self._reader = execute, reader
        self._clock, self._sleep = clock, sleep
        self._raised: BaseException | None = None

    async def run(self) -> None:
        """Follow the conversation to its end, and keep what it raises for the caller's task."""
        try:
            while (act := self._conversation.act) is not None:
                await self._follow(act)
        except BaseException as error:  # noqa: BLE001  # raised where the caller waits, and not in a group
            self._raised = error

    def ending(self) -> CallResult:
        """Return the result, or raise what takes its place."""
        if self._raised is not None:
            raise self._raised
        ended = self._conversation.ended
        if isinstance(ended, CallResult):
            return ended
        if not isinstance(ended.error, Exception):
            raise ended.error
        raise CallFailed(ended) from ended.error

    async def _follow(self, act: Act) -> None:
        try:
            answer = await self._do(act)
        except BaseException as error:  # noqa: BLE001  # the conversation raises what nobody can make a step of
            self._conversation.fail(error)
        else:
            self._conversation.answer(answer)

    async def _do(self, act: Act) -> Any:
        match act:
            case Begin():
                return await self._journal.run_or_settle(partial(announce, act, clock=self._clock), late=self._settle)
            case Read():
                return await self._reader(act.tool, dict(act.arguments))
            case Send():
                return await self._send(act)
            case Wait():
                return await self._sleep(act.ms / 1000)
            case Complete():
                # Whoever gave up: what happened is written down. The journal's deadline ends this.
                with anyio.CancelScope(shield=True):
                    return await self._journal.run(record, act, clock=self._clock)
            case _:
                assert_never(act)

    async def _send(self, act: Send) -> Any:
        cancelled = anyio.get_cancelled_exc_class()
        try:
            await checkpoint_if_cancelled()
        except cancelled as interruption:
            raise CallerGaveUp(interruption, was_sent=False) from None
        try:
            return await self._execute(act.arguments, act.idempotency_key, act.begun)
        except cancelled as interruption:
            raise CallerGaveUp(interruption, was_sent=True) from None

    def _settle(self, begun: Begun) -> None:
        """Settle, in the journal's thread, a step that was announced when nobody waited for it any more."""
        record(Complete(begun, StepState.FAILED, error=TOO_LATE), clock=self._clock)


async def _no_reader(tool: str, arguments: Mapping[str, Any]) -> Any:
    return no_reader(tool, arguments)
