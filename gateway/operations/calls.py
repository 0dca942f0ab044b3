"""Make a call: the one way in which calls are made.

Read the state before where the manifest asks for it, announce the call, make it with no transaction open, record how
it ended, and read the state once more. Whatever the tool's function raises is raised on once the journal holds what
it means; a note on the exception names the step and its state. When the process dies in between, the step stays
`intended`, and the sweep calls it uncertain.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import Error as DatabaseError

from approvals.core.before import BeforeAnswer
from approvals.core.errors import BeforeRequired
from approvals.core.redaction import hide
from approvals.core.upstreams import upstream_of as default_upstream
from approvals.core.violations import Violation
from approvals.operations.calls import Begun, begin_call, complete_call
from approvals.operations.intents import OBSERVED_BY_GATEWAY
from gateway.core.outcomes import is_repeatable, outcome_of_error
from gateway.core.retries import waits_ms
from ledger.core.statuses import StepState
from ledger.core.values import StepRecord
from manifests_registry.core.snapshot import Snapshot
from reversi_sdk.errors import ReversiError
from reversi_site.kit.clock import Clock, SystemClock
from reversi_site.kit.transactions import require_no_transaction

Execute = Callable[[dict[str, Any], str | None], Any]
Reader = Callable[[str, Mapping[str, Any]], Any]
Sleep = Callable[[float], None]

logger = logging.getLogger(__name__)


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

    @property
    def state(self) -> StepState:
        """Where the step stands."""
        return self.step.state


def call(
    run_id: str,
    tool: str,
    args: Mapping[str, Any],
    *,
    execute: Execute,
    principal: str,
    reader: Reader | None = None,
    reason: str = "",
    depends_on: Sequence[int] = (),
    idempotency_key: str | None = None,
    upstream_of: Callable[[str], str] = default_upstream,
    snapshot: Snapshot | None = None,
    clock: Clock | None = None,
    sleep: Sleep = time.sleep,
) -> CallResult:
    """Make one call of a run's agent and journal it.

    `execute` gets the arguments and the key to send, None where the tool carries none. `reader` makes the reads that
    `before` declares: it answers or raises. Raises what begin_call raises (then nothing ran) and what `execute` does.
    """
    require_no_transaction()
    clock = clock if clock is not None else SystemClock()

    def begin(before: BeforeAnswer | None = None) -> Begun:
        return begin_call(
            run_id=run_id,
            principal=principal,
            tool=tool,
            args=args,
            now=clock.now(),
            observed_by=OBSERVED_BY_GATEWAY,
            reason=reason,
            depends_on=depends_on,
            idempotency_key=idempotency_key,
            before=before,
            upstream_of=upstream_of,
            snapshot=snapshot,
        )

    try:
        begun = begin()
    except BeforeRequired as required:
        read = _Read(required.tool, required.arguments, reader)
    else:
        return _perform(begun, None, execute, clock, sleep)
    return _perform(begin(read.make()), read, execute, clock, sleep)


@dataclass(frozen=True, slots=True)
class _Read:
    """The read of the state before a call, which is made again after it."""

    tool: str
    arguments: Mapping[str, Any]
    reader: Reader | None

    def make(self) -> BeforeAnswer:
        if self.reader is None:
            return BeforeAnswer(error=f"nothing can run {self.tool}")
        require_no_transaction()
        try:
            return BeforeAnswer(value=self.reader(self.tool, dict(self.arguments)))
        except Exception as error:  # noqa: BLE001  # any failure of a read is a failed read
            return BeforeAnswer(error=str(error) or type(error).__name__)


def _perform(begun: Begun, read: _Read | None, execute: Execute, clock: Clock, sleep: Sleep) -> CallResult:
    attempts = _Attempts(begun, execute, clock, sleep)
    try:
        result = attempts.run()
    except BaseException as error:
        _record_failure(begun, error, attempts.outcome_of(error), clock)
        raise
    after = None if read is None else read.make()
    return _record_success(begun, result, after, clock)


def _record_success(begun: Begun, result: Any, after: BeforeAnswer | None, clock: Clock) -> CallResult:
    step, notes = begun.step, begun.notes
    try:
        step = complete_call(
            run_id=step.run_id,
            number=step.number,
            status=StepState.SUCCEEDED,
            result=result,
            after=after,
            actor=begun.actor,
            now=clock.now(),
        )
    except (DatabaseError, ReversiError) as lost:
        # The effect happened: an exception would invite the caller to repeat it. The step claims no more than before.
        notes = (*notes, _unrecorded(begun, lost))
    return CallResult(step, result, begun.idempotency_key, notes, begun.violations)


class _Attempts:
    """The sends of one call: one, or as many as the manifest's `retry` block allows for a harmless tool."""

    def __init__(self, begun: Begun, execute: Execute, clock: Clock, sleep: Sleep) -> None:
        self._begun, self._execute, self._clock, self._sleep = begun, execute, clock, sleep
        self._ends_at = begun.step.intended_at + timedelta(milliseconds=begun.timeout_ms)
        self._is_in_doubt = False

    def run(self) -> Any:
        """Return the result of the first send that succeeds; raises what the last one raised."""
        for wait_ms in waits_ms(self._begun.manifest):
            try:
                return self._send()
            except Exception as error:
                if not is_repeatable(error) or self._is_late(wait_ms):
                    raise
                self._note(error)
                self._sleep(wait_ms / 1000)
        return self._send()

    def outcome_of(self, error: BaseException) -> StepState:
        """Return what is known when the last send raised: one lost answer is enough not to know."""
        return StepState.UNCERTAIN if self._is_in_doubt else outcome_of_error(error)

    def _send(self) -> Any:
        require_no_transaction()
        return self._execute(_sent_arguments(self._begun), self._begun.idempotency_key)

    def _note(self, error: Exception) -> None:
        is_changing = self._begun.manifest is not None and self._begun.manifest.is_changing
        self._is_in_doubt |= is_changing and outcome_of_error(error) is StepState.UNCERTAIN

    def _is_late(self, wait_ms: int) -> bool:
        at: datetime = self._clock.now()
        return at + timedelta(milliseconds=wait_ms) >= self._ends_at


def _sent_arguments(begun: Begun) -> dict[str, Any]:
    # Each send gets its own copy: a tool that changes its arguments must not change the next send's.
    arguments: dict[str, Any] = json.loads(json.dumps(begun.args))
    carrier = begun.manifest.key_carrier if begun.manifest is not None else None
    if carrier is not None and carrier.argument is not None:
        arguments[carrier.argument] = begun.idempotency_key
    return arguments


def _record_failure(begun: Begun, error: BaseException, state: StepState, clock: Clock) -> None:
    try:
        complete_call(
            run_id=begun.step.run_id,
            number=begun.step.number,
            status=state,
            error=_shown(begun, error),
            actor=begun.actor,
            now=clock.now(),
        )
    except (DatabaseError, ReversiError) as lost:
        # The tool's own error matters more to the caller.
        error.add_note(_unrecorded(begun, lost))
    else:
        error.add_note(f"{_place(begun)} is {state.value}")


def _unrecorded(begun: Begun, lost: Exception) -> str:
    note = f"the outcome of {_place(begun)} could not be recorded: {lost}"
    logger.error(note, exc_info=lost)
    return note


def _place(begun: Begun) -> str:
    return f"step {begun.step.number} of run {begun.step.run_id}"


def _shown(begun: Begun, error: BaseException) -> str:
    text = str(error)
    shown = f"{type(error).__name__}: {text}" if text and not isinstance(error, ReversiError) else text
    return hide(shown or type(error).__name__, begun.args, begun.redacted)
