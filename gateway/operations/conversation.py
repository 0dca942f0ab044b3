"""One call as a conversation: what is to be done next, and what follows from how it went. It does nothing itself.

A driver does each act and says how it ended; the rules are here, once for every driver: the read before, the
announcement, the sends and which of them may be repeated, what a failure means, the read after, the record. The step
is recorded whatever happens to the driver between its announcement and its end, an interruption included: with
`succeeded` once an answer is there, `uncertain` where one may be missing, `failed` where nothing was sent.

A record that cannot be written becomes a note: the effect happened, and an error would invite a repetition.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from approvals.core.before import BeforeAnswer
from approvals.core.errors import BeforeRequired
from approvals.core.redaction import hide
from approvals.core.upstreams import upstream_of as default_upstream
from approvals.core.violations import Violation
from approvals.operations.calls import Begun
from gateway.core.outcomes import is_repeatable, outcome_of_error
from gateway.core.retries import waits_ms
from ledger.core.statuses import StepState
from ledger.core.values import StepRecord
from manifests_registry.core.snapshot import Snapshot
from reversi_sdk.errors import ReversiError
from reversi_sdk.model import Manifest
from reversi_site.kit.clock import Clock

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRequest:
    """One call as it is asked for; `snapshot` takes the place of the configured manifests."""

    run_id: str
    principal: str
    tool: str
    args: Mapping[str, Any]
    reason: str = ""
    depends_on: Sequence[int] = ()
    idempotency_key: str | None = None
    upstream_of: Callable[[str], str] = default_upstream
    snapshot: Snapshot | None = None


@dataclass(frozen=True, slots=True)
class CallResult:
    """A call that succeeded: what the tool returned, and its step as it stands.

    The step is still `intended`, and a note says why, when the outcome could not be recorded.
    """

    step: StepRecord
    result: Any
    idempotency_key: str | None
    notes: tuple[str, ...]
    violations: tuple[Violation, ...]
    manifest: Manifest | None = None

    @property
    def state(self) -> StepState:
        """Where the step stands."""
        return self.step.state


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A call that ends with an error, which is to be raised on; the step stands as it could be recorded."""

    step: StepRecord
    error: BaseException
    idempotency_key: str | None
    notes: tuple[str, ...]
    violations: tuple[Violation, ...]
    manifest: Manifest | None = None


@dataclass(frozen=True, slots=True)
class Begin:
    """Announce the call; the answer is a Begun."""

    request: CallRequest
    before: BeforeAnswer | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """Make a read that the manifest declares under `before`; the answer is its value."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Send:
    """Make the call; the answer is what the tool returned. The arguments are the driver's own copy."""

    begun: Begun
    arguments: dict[str, Any]
    idempotency_key: str | None


@dataclass(frozen=True, slots=True)
class Wait:
    """Let some time pass before the next send."""

    ms: int


@dataclass(frozen=True, slots=True)
class Complete:
    """Record how the call ended, whoever still waits for it; the answer is the step."""

    begun: Begun
    state: StepState
    result: Any = None
    error: str | None = None
    after: BeforeAnswer | None = None


Act = Begin | Read | Send | Wait | Complete


class CallerGaveUp(BaseException):
    """What a driver, or a tool's function, reports of a send when the caller stopped waiting for it.

    `interruption` is raised on once the step is settled: `uncertain` when the call may have been sent, `failed` when
    it certainly was not.
    """

    def __init__(self, interruption: BaseException, *, was_sent: bool) -> None:
        super().__init__("the caller gave up" if was_sent else "not sent: the caller gave up")
        self.interruption, self.was_sent = interruption, was_sent


class Conversation:
    """The course of one call: `act` is what to do next; when there is none left, `ended` is how the call ended.

    Raises, out of `answer` and `fail`, what ended the call before there was a step.
    """

    def __init__(self, request: CallRequest, *, clock: Clock) -> None:
        self._course = _course(request, clock)
        self.act: Act | None = next(self._course)
        self._ended: CallResult | CallEnded | None = None

    @property
    def ended(self) -> CallResult | CallEnded:
        """How the call ended; only once no act is left."""
        if self._ended is None:
            raise RuntimeError("the call goes on")
        return self._ended

    def answer(self, value: Any) -> None:
        """Say that the act was done, and what came of it."""
        self._go_on(lambda: self._course.send(value))

    def fail(self, error: BaseException) -> None:
        """Say what was raised while the act was being done."""
        self._go_on(lambda: self._course.throw(error))

    def _go_on(self, move: Callable[[], Act]) -> None:
        self.act = None
        try:
            self.act = move()
        except StopIteration as end:
            self._ended = end.value


@dataclass(frozen=True, slots=True)
class _Returned:
    """An act was done."""

    value: Any


@dataclass(frozen=True, slots=True)
class _Raised:
    """An act ended with an error; `was_sent` is false when a send was certainly not made."""

    error: BaseException
    was_sent: bool = True
    text: str | None = None


# As values, because an exception on its way through generators is no longer itself when it is a StopIteration.
_Answer = _Returned | _Raised
_Course = Generator[Act, Any, CallResult | CallEnded]


def _done(act: Act) -> Generator[Act, Any, _Answer]:
    try:
        return _Returned((yield act))
    except CallerGaveUp as gave_up:
        return _Raised(gave_up.interruption, gave_up.was_sent, str(gave_up))
    except BaseException as error:  # noqa: BLE001  # whatever it is, the course of the call decides what it means
        return _Raised(error)


def _course(request: CallRequest, clock: Clock) -> _Course:
    try:
        begun: Begun = yield Begin(request)
    except BeforeRequired as required:
        read = Read(required.tool, required.arguments)
    else:
        return (yield from _perform(begun, None, clock))
    before = yield from _done(read)
    if isinstance(before, _Raised) and not isinstance(before.error, Exception):
        raise before.error
    begun = yield Begin(request, _read_answer(before))
    return (yield from _perform(begun, read, clock))


def _read_answer(answer: _Answer) -> BeforeAnswer:
    if isinstance(answer, _Returned):
        return BeforeAnswer(value=answer.value)
    return BeforeAnswer(error=str(answer.error) or type(answer.error).__name__)


def _perform(begun: Begun, read: Read | None, clock: Clock) -> _Course:
    attempts = _Attempts(begun, clock)
    answer = yield from attempts.made()
    if isinstance(answer, _Raised):
        text = _shown(begun, answer)
        step, lost = yield from _recorded(Complete(begun, attempts.outcome_of(answer), error=text))
        return _ended(begun, step, answer.error, lost)
    if read is None:
        step, lost = yield from _recorded(Complete(begun, StepState.SUCCEEDED, answer.value))
        return _succeeded(begun, step, answer.value, lost)
    after = yield from _done(read)
    complete = Complete(begun, StepState.SUCCEEDED, answer.value, after=_read_answer(after))
    step, lost = yield from _recorded(complete)
    if isinstance(after, _Raised) and not isinstance(after.error, Exception):
        return _ended(begun, step, after.error, lost)
    return _succeeded(begun, step, answer.value, lost)


def _recorded(complete: Complete) -> Generator[Act, Any, tuple[StepRecord, str | None]]:
    """Return the step as it stands, and why it does not say how the call ended."""
    answer = yield from _done(complete)
    if isinstance(answer, _Returned):
        return answer.value, None
    if not isinstance(answer.error, Exception):
        raise answer.error
    note = f"the outcome of {_place(complete.begun)} could not be recorded: {answer.error}"
    logger.error(note, exc_info=answer.error)
    return complete.begun.step, note


def _succeeded(begun: Begun, step: StepRecord, result: Any, lost: str | None) -> CallResult:
    # The effect happened: an exception would invite the caller to repeat it. The step claims no more than before.
    notes = begun.notes if lost is None else (*begun.notes, lost)
    return CallResult(step, result, begun.idempotency_key, notes, begun.violations, begun.manifest)


def _ended(begun: Begun, step: StepRecord, error: BaseException, lost: str | None) -> CallEnded:
    # The tool's own error matters more to the caller than that its outcome could not be recorded.
    note = f"{_place(begun)} is {step.state.value}" if lost is None else lost
    error.add_note(note)
    return CallEnded(step, error, begun.idempotency_key, (*begun.notes, note), begun.violations, begun.manifest)


class _Attempts:
    """The sends of one call: one, or as many as the manifest's `retry` block allows for a harmless tool."""

    def __init__(self, begun: Begun, clock: Clock) -> None:
        self._begun, self._clock = begun, clock
        self._ends_at = begun.step.intended_at + timedelta(milliseconds=begun.timeout_ms)
        self._is_in_doubt = False

    def made(self) -> Generator[Act, Any, _Answer]:
        """Return the answer of the first send that succeeded, else of the last one."""
        for wait_ms in waits_ms(self._begun.manifest):
            answer = yield from _done(_send(self._begun))
            if isinstance(answer, _Returned) or not is_repeatable(answer.error) or self._is_late(wait_ms):
                return answer
            self._note(answer.error)
            pause = yield from _done(Wait(wait_ms))
            if isinstance(pause, _Raised):
                return replace(pause, was_sent=False, text="not sent again: the caller gave up")
        return (yield from _done(_send(self._begun)))

    def outcome_of(self, raised: _Raised) -> StepState:
        """Return what is known when the last send raised: one lost answer is enough not to know."""
        if self._is_in_doubt:
            return StepState.UNCERTAIN
        return outcome_of_error(raised.error) if raised.was_sent else StepState.FAILED

    def _note(self, error: BaseException) -> None:
        is_changing = self._begun.manifest is not None and self._begun.manifest.is_changing
        self._is_in_doubt |= is_changing and outcome_of_error(error) is StepState.UNCERTAIN

    def _is_late(self, wait_ms: int) -> bool:
        return self._clock.now() + timedelta(milliseconds=wait_ms) >= self._ends_at


def _send(begun: Begun) -> Send:
    # Each send gets its own copy: a tool that changes its arguments must not change the next send's.
    arguments: dict[str, Any] = json.loads(json.dumps(begun.args))
    carrier = begun.manifest.key_carrier if begun.manifest is not None else None
    if carrier is not None and carrier.argument is not None:
        arguments[carrier.argument] = begun.idempotency_key
    return Send(begun, arguments, begun.idempotency_key)


def _place(begun: Begun) -> str:
    return f"step {begun.step.number} of run {begun.step.run_id}"


def _shown(begun: Begun, raised: _Raised) -> str:
    error = raised.error
    text = str(error) if raised.text is None else raised.text
    is_named = raised.text is None and bool(text) and not isinstance(error, ReversiError)
    shown = f"{type(error).__name__}: {text}" if is_named else text
    return hide(shown or type(error).__name__, begun.args, begun.redacted)
