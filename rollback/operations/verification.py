"""Run the read-backs that could not be run when their steps were undone (D23).

Oldest first: what the read-back of an earlier step confirms vouches for the later ones on the same things, whose own
read-backs would look for a state that was undone since.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from ledger.core.statuses import ReadBack, StepState
from ledger.core.text import make_visible
from ledger.core.values import EventDraft
from ledger.operations.compensations import lock_for_executor, record_read_back
from reversi_sdk.model import Verification
from reversi_site.kit.transactions import durable
from rollback.core.overtaken import UndoneSoFar
from rollback.core.steps import PlanStep
from rollback.core.undo import undo_that_was_used
from rollback.operations.jobs import ERROR
from rollback.operations.reading import Matched, Mismatched, read_back
from rollback.operations.work import Work

TOO_LATE = "an earlier step on the same things was undone since: what this undo put back is there no more"
OnSettled = Callable[[PlanStep, bool], None]


def list_open(work: Work, steps: Sequence[PlanStep]) -> Collection[int]:
    """Return the numbers of the undone steps whose read-back is open and can be run now."""
    return frozenset(step.number for step in steps if is_open(step) and _can_be_read(work, step))


def is_open(step: PlanStep) -> bool:
    """Whether the step is called undone and was never checked, though its manifest says how."""
    is_undone = step.contradiction is None and step.record.state is StepState.COMPENSATED
    return is_undone and step.record.read_back is ReadBack.UNVERIFIED


def _can_be_read(work: Work, step: PlanStep) -> bool:
    declared = _verification(step)
    return declared is not None and work.tools.at(step.record.upstream).can_read(declared.tool)


def _verification(step: PlanStep) -> Verification | None:
    undo = undo_that_was_used(step)
    return None if undo is None else undo.verification


def settle_read_backs(work: Work, steps: Sequence[PlanStep], chosen: Collection[int], on_settled: OnSettled) -> None:
    """Settle the open read-backs of the chosen steps; `steps` are all of the run, oldest first.

    `on_settled` gets each step and whether it stays undone.
    """
    undone = UndoneSoFar()
    for step in steps:
        state = _settle(work, step, undone) if step.number in chosen else step.record.read_back
        stands = step.number in chosen and state is None
        if step.number in chosen:
            on_settled(step, not stands)
        undone.note(_as_it_stands(step, stands), is_confirmed=state is ReadBack.VERIFIED)


def _as_it_stands(step: PlanStep, stands: bool) -> PlanStep:
    return replace(step, record=replace(step.record, state=StepState.COMPENSATION_FAILED)) if stands else step


def _settle(work: Work, step: PlanStep, undone: UndoneSoFar) -> ReadBack | None:
    """Settle one open read-back; None when the step turns out to stand. Without an answer it stays unverified."""
    declared = _verification(step)
    if declared is None:
        return ReadBack.UNVERIFIED
    if undone.have_overtaken(step):
        return _settle_overtaken(work, step, declared, undone)
    verdict = read_back(work, step, declared)
    match verdict:
        case Matched():
            _record(work, step, None, {"tool": declared.tool})
            return ReadBack.VERIFIED
        case Mismatched(tool=tool, mismatch=mismatch):
            shown = make_visible(mismatch, limit=ERROR)
            error = f"verification failed: {tool} did not show the expected state after the undo"
            _record(work, step, error, {"tool": tool, "mismatch": shown})
            return None
        case _:
            _leave_open(work, step, declared, make_visible(verdict.error, limit=ERROR))
            return ReadBack.UNVERIFIED


def _settle_overtaken(work: Work, step: PlanStep, declared: Verification, undone: UndoneSoFar) -> ReadBack:
    if undone.vouch_for(step):
        _record(work, step, None, {"tool": declared.tool, "vouched": "by the read-back of an earlier step"})
        return ReadBack.VERIFIED
    _leave_open(work, step, declared, TOO_LATE)
    return ReadBack.UNVERIFIED


def _leave_open(work: Work, step: PlanStep, declared: Verification, why: str) -> None:
    work.note(EventDraft("read_back_failed", step.number, {"tool": declared.tool, "error": why}))


def _record(work: Work, step: PlanStep, mismatch: str | None, data: dict[str, str]) -> None:
    with durable():
        record_read_back(
            run=lock_for_executor(run_id=work.run_id, fence=work.claim.fence),
            number=step.number,
            mismatch=mismatch,
            data=data,
            actor=work.claim.actor,
            now=work.clock.now(),
        )
