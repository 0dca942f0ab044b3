"""Hand the undo of one step to a remote worker, and take its outcome back (D23, D27).

The worker stands where an executor of ours would: `begin` commits `compensating` and the attempt under a lease and a
new fence before the worker learns anything, `complete` commits the answer and what follows from it. The lease is a job
like any other, so that nobody else works on the run meanwhile; one that ran out is taken over. Like a compensator
command, a remote worker must honour the key that comes with the call. What its read-back answered is compared here.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias, assert_never

from approvals.core.people import Act, Caller
from approvals.queries import get_run_for
from ledger.core.errors import StepNotFound
from ledger.core.statuses import ReadBack
from ledger.core.text import make_visible, require_text
from ledger.core.values import EventDraft, StepRecord
from ledger.operations.compensations import (
    begin_compensation,
    complete_compensation,
    fail_compensation,
    lock_for_executor,
    record_note,
)
from ledger.operations.journal import LockedRun
from ledger.queries import get_step
from reversi_sdk.model import Undo
from reversi_site.kit.transactions import durable
from rollback.core.actions import Kind
from rollback.core.assessment import Assessment, assess, is_repeatable
from rollback.core.dependencies import Blockers
from rollback.core.doubt import Course, Doubt, course_of, doubt_of
from rollback.core.errors import LeaseLost, OptionsInvalid, UndoNotPossible
from rollback.core.jobs import LIVE
from rollback.core.plan import needs_approval
from rollback.core.ports import Answer, ReadFailed, UndoCall
from rollback.core.read_back import Expectation, first_mismatch
from rollback.core.sending import undo_call
from rollback.core.steps import AttemptOutcome, PlanStep
from rollback.core.undo import Chosen, undo_that_was_used
from rollback.models import NAME, Attempt, RollbackJob
from rollback.operations.jobs import ERROR, LEASE_MARGIN_MS, Claim, claim_remote, finish_locked, hold
from rollback.operations.reading import expected_of
from rollback.operations.undoing import OUTCOME_UNKNOWN, new_attempt
from rollback.operations.work import usual_timeout_ms
from rollback.queries import RunSteps, job_record, load_step, load_steps

TOKEN_BYTES = 32


@dataclass(frozen=True, slots=True)
class RemoteRead:
    """The declared read-back that the worker is to make after the undo."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RemoteCall:
    """An undo handed out: the call, and the lease under which its outcome is taken."""

    call: UndoCall
    lease: str
    lease_ms: int
    verification: RemoteRead | None

    def to_json(self) -> dict[str, Any]:
        """Return what the worker gets: the call as a compensator gets it, with the lease and the read-back beside."""
        read = self.verification
        return {
            **self.call.to_json(),
            "lease": self.lease,
            "lease_ms": self.lease_ms,
            "verification": None if read is None else {"tool": read.tool, "arguments": dict(read.arguments)},
        }


def begin_remote_compensation(*, run_id: str, number: int, worker: str, caller: Caller, now: datetime) -> RemoteCall:
    """Commit that a remote worker is about to undo a step, and return what it is to send.

    Raises UndoNotPossible for a step that must not be undone as the run stands, RollbackRunning while anybody else
    works on the run, ForeignRun and NotPermitted.
    """
    get_run_for(caller=caller, run_id=run_id, own=Act.COMPENSATE_OWN, others=Act.COMPENSATE_ANY)
    name = require_text("worker", worker, limit=NAME)
    lease = f"lease_{secrets.token_hex(TOKEN_BYTES)}"
    with durable():
        claim = claim_remote(run_id=run_id, actor=caller.username, worker=name, lease_hash=_hash(lease), now=now)
        step, chosen = _next_undo(load_steps(run_id), number, now)
        timeout_ms = chosen.undo.timeout_ms or usual_timeout_ms()
        hold(claim, busy_ms=timeout_ms)
        _begin(claim, step, chosen, name, now)
    return RemoteCall(
        call=undo_call(step, chosen, timeout_ms=timeout_ms),
        lease=lease,
        lease_ms=timeout_ms + LEASE_MARGIN_MS,
        verification=_read_of(step, chosen.undo),
    )


def _hash(lease: str) -> str:
    return hashlib.sha256(lease.encode("utf-8", "surrogatepass")).hexdigest()


def _next_undo(loaded: RunSteps, number: int, now: datetime) -> tuple[PlanStep, Chosen]:
    """Return the step and the undo that serves it, when nothing that still stands was built on it."""
    blockers = Blockers()
    for step in reversed(loaded.steps):
        found = assess(step, keyed_digest=loaded.keyed_digest, now=now)
        if step.number == number:
            return step, _handed_out(step, found, blockers.of(step))
        if found.needs_undo:
            blockers.stands(step)
        else:
            blockers.passes(step)
    raise StepNotFound(loaded.run_id, number)


def _handed_out(step: PlanStep, found: Assessment, blocked_by: tuple[int, ...]) -> Chosen:
    chosen = found.chosen
    if found.kind is not Kind.COMPENSATE or chosen is None:
        raise _impossible(step, f"its plan says {found.kind.value}: {found.reason}")
    if blocked_by:
        raise _impossible(step, f"deferred, step {blocked_by[0]} still stands on it", blocked_by)
    if needs_approval(step, chosen):
        raise _impossible(step, f"{chosen.undo.tool} needs an approval: an operator can roll it back")
    repeatable = is_repeatable(step, chosen, found.doubt, is_keyed=True)
    if course_of(found.doubt, is_repeatable=repeatable, can_read=False) is not Course.SEND:
        raise _impossible(step, "an earlier undo is in doubt: roll back where a reader can look, or resolve the step")
    return chosen


def _impossible(step: PlanStep, why: str, blocked_by: tuple[int, ...] = ()) -> UndoNotPossible:
    return UndoNotPossible(step.record.run_id, step.number, why, blocked_by)


def _begin(claim: Claim, step: PlanStep, chosen: Chosen, worker: str, now: datetime) -> None:
    row = new_attempt(step, chosen, number=len(step.attempts), job_id=claim.job.id, is_keyed=True, now=now)
    data = {
        "tool": row.tool,
        "key": row.key,
        "role": row.role,
        "attempt": row.number,
        "job": row.job_id,
        "fence": claim.fence,
        "overwrite": False,
        "worker": worker,
    }
    run = lock_for_executor(run_id=claim.run_id, fence=claim.fence)
    begin_compensation(run=run, number=step.number, data=data, actor=claim.actor, now=now)
    row.save(force_insert=True)


def _read_of(step: PlanStep, undo: Undo) -> RemoteRead | None:
    expectation = None if undo.verification is None else expected_of(step, undo.verification)
    return RemoteRead(expectation.tool, expectation.arguments) if isinstance(expectation, Expectation) else None


ReadAnswer: TypeAlias = Answer | ReadFailed


def complete_remote_compensation(
    *,
    run_id: str,
    number: int,
    lease: str,
    status: str,
    caller: Caller,
    now: datetime,
    error: str | None = None,
    read_back: ReadAnswer | None = None,
) -> StepRecord:
    """Record how an undo that was handed out ended, and give the run back.

    Repeated with the same status it changes nothing. Raises LeaseLost when the lease is over and somebody else may have
    taken the undo up; then only the next undo of the step, with the same key, can tell.
    """
    get_run_for(caller=caller, run_id=run_id, own=Act.COMPENSATE_OWN, others=Act.COMPENSATE_ANY)
    outcome = _outcome(status)
    with durable():
        job = RollbackJob.objects.filter(run_id=run_id, lease_hash=_hash(lease)).first()
        attempt = None if job is None else Attempt.objects.filter(job=job, step=number).first()
        if job is None or attempt is None:
            raise LeaseLost(run_id, number)
        if job.state in LIVE:
            claim = Claim(job_record(job), job.fence or 0, job.requested_by)
            _Completion(claim, attempt, outcome, error, read_back, now).record()
        elif attempt.outcome != outcome:
            raise LeaseLost(run_id, number)
    return get_step(run_id, number)


def _outcome(status: str) -> AttemptOutcome:
    if status not in (AttemptOutcome.SUCCEEDED, AttemptOutcome.FAILED, AttemptOutcome.UNKNOWN):
        raise OptionsInvalid(f"status: must be succeeded, failed or unknown, not {status!r}")
    return AttemptOutcome(status)


@dataclass(frozen=True, slots=True)
class _Completion:
    """The end of one undo that was handed out, within the caller's block."""

    claim: Claim
    attempt: Attempt
    outcome: AttemptOutcome
    error: str | None
    read_back: ReadAnswer | None
    now: datetime

    def record(self) -> None:
        """Write down the answer, what follows from it, and the end of the job; raises FenceLost."""
        run = lock_for_executor(run_id=self.claim.run_id, fence=self.claim.fence)
        self._take_in(run)
        step = load_step(self.claim.run_id, self.attempt.step)
        match self.outcome:
            case AttemptOutcome.SUCCEEDED:
                self._check(run, step)
            case AttemptOutcome.FAILED | AttemptOutcome.NOT_RUN:
                is_in_doubt = doubt_of(step).kind is Doubt.LOST
                why = self._shown or "the undo failed"
                self._fail(run, f"{OUTCOME_UNKNOWN}: {why}" if is_in_doubt else why, is_unknown=is_in_doubt)
            case AttemptOutcome.UNKNOWN:
                self._fail(run, f"{OUTCOME_UNKNOWN}: {self._shown or 'the answer was lost'}", is_unknown=True)
            case _:
                assert_never(self.outcome)
        finish_locked(self.claim, done=1, now=self.now)

    @property
    def _shown(self) -> str | None:
        return None if self.error is None else make_visible(self.error, limit=ERROR)

    def _take_in(self, run: LockedRun) -> None:
        Attempt.objects.filter(pk=self.attempt.pk).update(outcome=self.outcome, error=self._shown, answered_at=self.now)
        data = {"attempt": self.attempt.number, "outcome": self.outcome.value, "error": self._shown}
        number = self.attempt.step
        record_note(run=run, number=number, kind="undo_answered", data=data, actor=self.claim.actor, now=self.now)

    def _check(self, run: LockedRun, step: PlanStep) -> None:
        """Settle an undo that was answered: it counts as done only when its declared read-back agrees."""
        undo = undo_that_was_used(step)
        verification = None if undo is None else undo.verification
        if verification is None:
            # A step whose document was lost meanwhile cannot tell what to look at.
            self._complete(run, ReadBack.UNVERIFIED if undo is None else ReadBack.NOT_DECLARED)
            return
        expectation = expected_of(step, verification)
        if isinstance(expectation, str):
            self._fail_check(run, verification.tool, expectation)
        elif self.read_back is None:
            self._complete(run, ReadBack.UNVERIFIED)
        else:
            self._compare(run, expectation, self.read_back)

    def _compare(self, run: LockedRun, expectation: Expectation, answer: ReadAnswer) -> None:
        why = answer.error if isinstance(answer, ReadFailed) else first_mismatch(expectation, answer.value)
        if why is None:
            self._complete(run, ReadBack.VERIFIED, {"read_back": expectation.tool})
        else:
            self._fail_check(run, expectation.tool, why)

    def _fail_check(self, run: LockedRun, tool: str, why: str) -> None:
        shown = make_visible(why, limit=ERROR)
        seen = EventDraft("verification_failed", self.attempt.step, {"tool": tool, "mismatch": shown})
        error = f"verification failed: {tool} did not show the expected state after the undo"
        self._fail(run, error, is_unknown=False, extra=(seen,))

    def _complete(self, run: LockedRun, read_back: ReadBack, seen: Mapping[str, str] | None = None) -> None:
        data = {"tool": self.attempt.tool, "key": self.attempt.key, "job": self.claim.job.id, **(seen or {})}
        complete_compensation(
            run=run,
            number=self.attempt.step,
            read_back=read_back,
            data=data,
            actor=self.claim.actor,
            now=self.now,
        )

    def _fail(self, run: LockedRun, error: str, *, is_unknown: bool, extra: tuple[EventDraft, ...] = ()) -> None:
        fail_compensation(
            run=run,
            number=self.attempt.step,
            error=error,
            is_outcome_unknown=is_unknown,
            data={"tool": self.attempt.tool, "key": self.attempt.key, "attempts": 1},
            actor=self.claim.actor,
            now=self.now,
            extra=extra,
        )
