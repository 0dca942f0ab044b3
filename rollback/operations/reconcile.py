"""Settle the calls of a run that nobody knows the outcome of, by what its own agent found downstream (D13, D25).

What only the agent saw counts as observed by the caller: an undo that rests on it may need an approval (D14). A step
that is not unresolved any more is left as it is, and named with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from approvals.core.errors import NotResolvable
from approvals.core.people import Act, Caller, may
from approvals.operations.resolution import NOTE, corrected_handle
from approvals.queries import get_run_for
from ledger.core.errors import IllegalTransition
from ledger.core.statuses import UNRESOLVED, StepState
from ledger.core.text import require_text
from ledger.core.values import StepRecord
from ledger.operations.steps import reconcile_outcome
from ledger.queries import get_step, list_steps
from reversi_sdk.references import MISSING, Missing
from rollback.core.errors import NoteRequired, StatusUnknown

STATUSES = (StepState.SUCCEEDED, StepState.FAILED)
NOT_OPEN = "it is not unresolved"
OPEN = "outcome unknown: nothing was found about it"


@dataclass(frozen=True, slots=True)
class ReconcileAnswer:
    """What was found about one step, and where; a result comes only with `succeeded`."""

    step: int
    status: str
    note: str
    result: Any | Missing = MISSING


@dataclass(frozen=True, slots=True)
class Left:
    """A step that was not settled, and why."""

    step: int
    state: StepState
    reason: str


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What was settled, and what is still open."""

    settled: tuple[StepRecord, ...]
    left: tuple[Left, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the answer as the interface shows it."""
        return {
            "settled": [{"step": step.number, "state": step.state.value} for step in self.settled],
            "open": [{"step": each.step, "state": each.state.value, "reason": each.reason} for each in self.left],
        }


def reconcile(*, run_id: str, caller: Caller, now: datetime, answers: Sequence[ReconcileAnswer] = ()) -> Reconciled:
    """Settle the steps that were found out about, and name those that stay open.

    All answers are checked before one is taken. Raises ForeignRun, NotPermitted, StepNotFound, and an InvalidInput for
    an answer that cannot be taken.
    """
    run = get_run_for(caller=caller, run_id=run_id, own=Act.RECONCILE_OWN, others=Act.RESOLVE)
    steps = [_checked(run_id, answer) for answer in answers]
    is_hearsay = run.principal == caller.username or not may(caller, Act.RESOLVE)
    settled, left = [], []
    for step, answer in zip(steps, answers, strict=True):
        taken = _settle(step, answer, is_hearsay=is_hearsay, actor=caller.username, now=now)
        if isinstance(taken, Left):
            left.append(taken)
        else:
            settled.append(taken)
    told = {each.step for each in left}
    still_open = (step for step in list_steps(run_id) if step.state in UNRESOLVED and step.number not in told)
    return Reconciled(tuple(settled), (*left, *(Left(step.number, step.state, OPEN) for step in still_open)))


def _checked(run_id: str, answer: ReconcileAnswer) -> StepRecord:
    if answer.status not in STATUSES:
        raise StatusUnknown(answer.status, STATUSES)
    if not require_text("note", answer.note, limit=NOTE).strip():
        raise NoteRequired
    if answer.status == StepState.FAILED and not isinstance(answer.result, Missing):
        raise NotResolvable("result: a call that failed has none")
    return get_step(run_id, answer.step)


def _settle(
    step: StepRecord, answer: ReconcileAnswer, *, is_hearsay: bool, actor: str, now: datetime
) -> StepRecord | Left:
    succeeded = answer.status == StepState.SUCCEEDED
    handle, unrecoverable = corrected_handle(step, answer.result) if succeeded else (None, None)
    try:
        return reconcile_outcome(
            run_id=step.run_id,
            number=step.number,
            state=StepState(answer.status),
            handle=handle,
            unrecoverable=unrecoverable,
            is_hearsay=is_hearsay and succeeded,
            note=answer.note,
            actor=actor,
            now=now,
        )
    except IllegalTransition:
        return Left(step.number, get_step(step.run_id, step.number).state, NOT_OPEN)
