"""Undo one step: commit, send, commit, check, commit; and the rule for what was sent and never answered (D23).

The order is the safety: `compensating` and the attempt are on disk before anything is sent, the answer before the
read-back, the outcome last. A process that dies on any line leaves a step that the next executor can judge from
its attempts alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import Any, assert_never

from ledger.core.statuses import ReadBack, StepState
from ledger.core.text import make_visible
from ledger.core.values import EventDraft
from ledger.operations.compensations import (
    begin_compensation,
    complete_compensation,
    fail_compensation,
    lock_for_executor,
    record_note,
)
from ledger.queries import get_step
from reversi_site.kit.transactions import durable, require_no_transaction
from rollback.core.assessment import is_repeatable
from rollback.core.backoff import delay_ms
from rollback.core.doubt import Course, Doubt, Doubtful, course_of, doubt_about, may_send_after_mismatch
from rollback.core.plan import needs_approval
from rollback.core.ports import Tools, UndoAnswer, UndoCall, UndoFailed, Undone, UndoNotRun, UndoUnknown, why_not_here
from rollback.core.report import Refusal, Refused
from rollback.core.sending import undo_call
from rollback.core.steps import AttemptFact, AttemptOutcome, PlanStep
from rollback.core.undo import Chosen
from rollback.models import Attempt
from rollback.operations.jobs import ERROR, renew
from rollback.operations.reading import (
    Matched,
    Mismatched,
    Unreadable,
    Verdict,
    presentable,
    read_back,
    what_changed_since,
)
from rollback.operations.work import Work, usual_timeout_ms
from rollback.queries import attempt_fact

OUTCOME_UNKNOWN = "outcome unknown"
MOVED = "somebody settled the step otherwise while it was looked at: plan again"
_STUCK = {
    Doubt.LOST: "the answer to the undo was lost, and a repeat could undo it twice",
    Doubt.UNSEEN: "the undo was answered and then not seen, and a repeat could undo it twice",
}


class _MovedError(Exception):
    """Ends the transaction that would have acted on a step as it no longer is."""


class Turn(Enum):
    """Whether the undo is settled by now."""

    GO_ON = "go_on"
    SETTLED = "settled"


@dataclass(slots=True)
class Undoing:
    """One step's undo under way."""

    work: Work
    step: PlanStep
    chosen: Chosen
    state: StepState
    is_marked: bool
    attempts: list[AttemptFact]
    sends_left: int
    last_error: str = ""
    rows: list[Attempt] = field(default_factory=list)

    @classmethod
    def of(cls, work: Work, step: PlanStep, chosen: Chosen) -> Undoing:
        """Take up a step as it stands."""
        return cls(
            work=work,
            step=step,
            chosen=chosen,
            state=step.record.state,
            is_marked=step.record.is_undo_outcome_unknown,
            attempts=list(step.attempts),
            sends_left=work.options.retrying.attempts,
        )

    def run(self) -> Refused | None:
        """Undo the step or settle why not; returns the refusal when nothing was sent. Raises FenceLost."""
        turn: Refused | Turn = Turn.GO_ON
        try:
            while turn is Turn.GO_ON:
                turn = self._next()
        except _MovedError:
            return refuse(self.work, self.step, Refused(Refusal.PLANNED_OTHERWISE, MOVED))
        return turn if isinstance(turn, Refused) else None

    @property
    def _tools(self) -> Tools:
        return self.work.tools.at(self.step.record.upstream)

    @property
    def doubt(self) -> Doubtful:
        """What is unclear about the sends so far."""
        return doubt_about(self.state, self.is_marked, self.attempts)

    @property
    def is_repeatable(self) -> bool:
        """Whether one more send of the same undo cannot do it twice."""
        return is_repeatable(self.step, self.chosen, self.doubt, is_keyed=self._is_keyed)

    @property
    def _is_keyed(self) -> bool:
        tool = self.step.follow_ups.get(self.chosen.undo.tool)
        carries = tool is not None and tool.key_carrier is not None
        return carries or self._tools.executor.honours_key(self.chosen.undo.tool)

    @property
    def _can_read(self) -> bool:
        verification = self.chosen.undo.verification
        return verification is not None and self._tools.can_read(verification.tool)

    def _next(self) -> Refused | Turn:
        doubt = self.doubt
        course = course_of(doubt, is_repeatable=self.is_repeatable, can_read=self._can_read)
        match course:
            case Course.CHECK:
                return self._check()
            case Course.READ_FIRST:
                return self._look_first(doubt)
            case Course.STOP:
                return self._give_up(self.last_error or _STUCK[doubt.kind])
            case Course.SEND if self.sends_left == 0:
                return self._look_last(doubt)
            case Course.SEND:
                return self._send(doubt)
            case _:
                assert_never(course)

    def _look_first(self, doubt: Doubtful) -> Refused | Turn:
        verdict = self._read_back()
        match verdict:
            case Matched():
                return self._complete(ReadBack.VERIFIED, verdict)
            case Unreadable(tool=tool, error=error):
                return self._give_up(f"an earlier undo may have worked, and {tool} could not be read: {error}")
            case Mismatched(tool=tool, mismatch=mismatch):
                may_send = may_send_after_mismatch(doubt, is_repeatable=self.is_repeatable)
                if may_send and self.sends_left > 0:
                    return self._send(doubt)
                return self._give_up(self.last_error or f"{tool} does not show the undo: {mismatch}")
            case _:
                assert_never(verdict)

    def _look_last(self, doubt: Doubtful) -> Refused | Turn:
        if doubt.kind is Doubt.LOST:
            verdict = self._read_back()
            if isinstance(verdict, Matched):
                return self._complete(ReadBack.VERIFIED, verdict)
        return self._give_up(self.last_error)

    def _read_back(self) -> Verdict:
        verification = self.chosen.undo.verification
        if verification is None or not self._tools.can_read(verification.tool):
            return Unreadable(self.chosen.undo.tool, "nothing can read it back")
        return read_back(self.work, self.step, verification)

    def _send(self, doubt: Doubtful) -> Refused | Turn:
        refused = self._refusal(doubt)
        if refused is not None:
            is_begun = self.state is StepState.COMPENSATING and refused.kind is Refusal.CHANGED_SINCE
            return self._give_up(refused.error) if is_begun else refuse(self.work, self.step, refused)
        self._wait()
        self._begin()
        require_no_transaction()
        answer = self._tools.executor.compensate(self._call())
        self.sends_left -= 1
        self._take_in(answer)
        return self._check() if isinstance(answer, Undone) else Turn.GO_ON

    def _refusal(self, doubt: Doubtful) -> Refused | None:
        tool = self.chosen.undo.tool
        if not self._tools.executor.can_run(tool):
            return Refused(Refusal.NOBODY_RUNS_IT, why_not_here(tool, self._tools))
        if needs_approval(self.step, self.chosen) and not self.work.options.approves_compensations:
            return Refused(Refusal.AWAITING_APPROVAL, f"{tool} needs an approval")
        was_sent = doubt.kind is not Doubt.NONE or bool(self.rows)
        changed = what_changed_since(self.work, self.step, was_sent=was_sent)
        if changed is not None and self.work.options.is_overwrite_allowed:
            self.work.note(EventDraft("overwriting", self.step.number, {"tool": tool, "seen": changed}))
            return None
        return None if changed is None else Refused(Refusal.CHANGED_SINCE, changed)

    def _wait(self) -> None:
        retrying, tries = self.work.options.retrying, len(self.rows)
        if tries:
            wait_ms = delay_ms(retrying, tries=tries, chance=self.work.chance())
            renew(self.work.claim, busy_ms=wait_ms)
            self.work.sleep(wait_ms / 1000)

    @property
    def _timeout_ms(self) -> int:
        return self.chosen.undo.timeout_ms or usual_timeout_ms()

    def _call(self) -> UndoCall:
        return undo_call(
            self.step,
            self.chosen,
            timeout_ms=self._timeout_ms,
            is_overwrite_allowed=self.work.options.is_overwrite_allowed,
        )

    def _begin(self) -> None:
        """Commit that the undo is about to be sent, under a lease that outlasts the call."""
        work, now = self.work, self.work.clock.now()
        row = self._new_attempt(now)
        with durable():
            run = lock_for_executor(run_id=work.run_id, fence=work.claim.fence)
            self._require_unmoved()
            work.hold(self._timeout_ms)
            begin_compensation(
                run=run, number=self.step.number, data=self._journal(row), actor=work.claim.actor, now=now
            )
            row.save(force_insert=True)
        self.state = StepState.COMPENSATING
        self.rows.append(row)
        self.attempts.append(attempt_fact(row))

    def _require_unmoved(self) -> None:
        """Raise when somebody settled the step otherwise since it was read: what was chosen may be wrong by now."""
        if self.rows:
            return
        seen, now = self.step.record, get_step(self.work.run_id, self.step.number)
        if (now.state, now.handle, now.is_disputed) != (seen.state, seen.handle, seen.is_disputed):
            raise _MovedError

    def _new_attempt(self, now: datetime) -> Attempt:
        return new_attempt(
            self.step,
            self.chosen,
            number=len(self.attempts),
            job_id=self.work.claim.job.id,
            is_keyed=self._is_keyed,
            now=now,
        )

    def _journal(self, row: Attempt) -> dict[str, Any]:
        return {
            "tool": row.tool,
            "key": row.key,
            "role": row.role,
            "attempt": row.number,
            "job": row.job_id,
            "fence": self.work.claim.fence,
            "overwrite": self.work.options.is_overwrite_allowed,
        }

    def _take_in(self, answer: UndoAnswer) -> None:
        """Commit what was answered, before anything is concluded from it."""
        outcome, error = _outcome_of(answer)
        work, now, row = self.work, self.work.clock.now(), self.rows[-1]
        shown = None if error is None else presentable(self.step, error)
        data = {"attempt": row.number, "outcome": outcome.value, "error": shown}
        with durable():
            run = lock_for_executor(run_id=work.run_id, fence=work.claim.fence)
            Attempt.objects.filter(pk=row.pk).update(outcome=outcome, error=shown, answered_at=now)
            record_note(
                run=run, number=self.step.number, kind="undo_answered", data=data, actor=work.claim.actor, now=now
            )
        self.attempts[-1] = replace(self.attempts[-1], outcome=outcome)
        # What became of an earlier send is the better reason, if there is one.
        if outcome is not AttemptOutcome.NOT_RUN or not self.last_error:
            self.last_error = shown or ""

    def _check(self) -> Turn:
        """Settle an undo that was answered: it counts as done only when its declared read-back agrees."""
        verification = self.chosen.undo.verification
        if verification is None:
            return self._complete(ReadBack.NOT_DECLARED, None)
        if not self._can_read:
            return self._complete(ReadBack.UNVERIFIED, None)
        verdict = self._read_back()
        match verdict:
            case Matched():
                return self._complete(ReadBack.VERIFIED, verdict)
            case Mismatched(tool=tool, mismatch=mismatch):
                error = f"verification failed: {tool} did not show the expected state after the undo"
                return self._fail(error, is_unknown=False, extra=[_verification_failed(self.step, tool, mismatch)])
            case Unreadable(tool=tool, error=why):
                error = f"verification failed: {tool} did not show the expected state after the undo ({why})"
                return self._fail(error, is_unknown=False, extra=[_verification_failed(self.step, tool, why)])
            case _:
                assert_never(verdict)

    def _give_up(self, why: str) -> Refused | Turn:
        """End without a success; what was already marked failed stays as it is, and the report says why."""
        is_unknown = self.doubt.kind is Doubt.LOST
        error = f"{OUTCOME_UNKNOWN}: {why}" if is_unknown else why
        if self.state is not StepState.COMPENSATING:
            return refuse(self.work, self.step, Refused(Refusal.IN_DOUBT, error))
        return self._fail(error, is_unknown=is_unknown)

    def _complete(self, read_back: ReadBack, verdict: Matched | None) -> Turn:
        work, now, number = self.work, self.work.clock.now(), self.step.number
        data = {"tool": self.chosen.undo.tool, "key": self.chosen.key, "job": work.claim.job.id}
        seen = {} if verdict is None else {"read_back": verdict.tool}
        with durable():
            run = lock_for_executor(run_id=work.run_id, fence=work.claim.fence)
            self._require_unmoved()
            if self.state is not StepState.COMPENSATING:
                # An earlier undo turned out to have worked: nothing was sent this time.
                sent = {**data, "attempt": None}
                begin_compensation(run=run, number=number, data=sent, actor=work.claim.actor, now=now)
            complete_compensation(
                run=run, number=number, read_back=read_back, data={**data, **seen}, actor=work.claim.actor, now=now
            )
        return Turn.SETTLED

    def _fail(self, error: str, *, is_unknown: bool, extra: Sequence[EventDraft] = ()) -> Turn:
        work = self.work
        data = {"tool": self.chosen.undo.tool, "key": self.chosen.key, "attempts": len(self.rows)}
        with durable():
            fail_compensation(
                run=lock_for_executor(run_id=work.run_id, fence=work.claim.fence),
                number=self.step.number,
                error=error,
                is_outcome_unknown=is_unknown,
                data=data,
                actor=work.claim.actor,
                now=work.clock.now(),
                extra=tuple(extra),
            )
        return Turn.SETTLED


def new_attempt(step: PlanStep, chosen: Chosen, *, number: int, job_id: str, is_keyed: bool, now: datetime) -> Attempt:
    """Return the row of one send, to be committed before it."""
    return Attempt(
        run_id=step.record.run_id,
        step=step.number,
        number=number,
        job_id=job_id,
        pair=chosen.pair,
        generation=chosen.generation,
        key=chosen.key,
        tool=chosen.undo.tool,
        role=chosen.role.value,
        is_keyed=is_keyed,
        sent_at=now,
    )


def refuse(work: Work, step: PlanStep, refused: Refused) -> Refused:
    """Journal that nothing was sent for a step, whose state stays as it was."""
    work.note(EventDraft("undo_refused", step.number, {"why": refused.kind.value, "error": refused.error}))
    return refused


def leave_in_doubt(work: Work, step: PlanStep) -> None:
    """Mark an undo that was begun, and that nothing can tell about, for an operator to decide (D23)."""
    with durable():
        fail_compensation(
            run=lock_for_executor(run_id=work.run_id, fence=work.claim.fence),
            number=step.number,
            error=f"{OUTCOME_UNKNOWN}: {_STUCK[Doubt.LOST]}",
            is_outcome_unknown=True,
            data={},
            actor=work.claim.actor,
            now=work.clock.now(),
        )


def _verification_failed(step: PlanStep, tool: str, mismatch: str) -> EventDraft:
    return EventDraft(
        "verification_failed", step.number, {"tool": tool, "mismatch": make_visible(mismatch, limit=ERROR)}
    )


def _outcome_of(answer: UndoAnswer) -> tuple[AttemptOutcome, str | None]:
    match answer:
        case Undone():
            return AttemptOutcome.SUCCEEDED, None
        case UndoFailed(error=error):
            return AttemptOutcome.FAILED, error
        case UndoNotRun(error=error):
            return AttemptOutcome.NOT_RUN, error
        case UndoUnknown(error=error):
            return AttemptOutcome.UNKNOWN, error
        case _:
            assert_never(answer)
