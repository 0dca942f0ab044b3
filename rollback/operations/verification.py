"""Run the read-backs that could not be run when their steps were undone (D23)."""

from __future__ import annotations

from collections.abc import Iterable

from ledger.core.statuses import ReadBack, StepState
from ledger.core.text import make_visible
from ledger.core.values import EventDraft
from ledger.operations.compensations import lock_for_executor, record_read_back
from reversi_sdk.model import Verification
from reversi_site.kit.transactions import durable
from rollback.core.steps import PlanStep
from rollback.core.undo import undo_that_was_used
from rollback.operations.jobs import ERROR
from rollback.operations.reading import Matched, Mismatched, read_back
from rollback.operations.work import Work


def open_read_backs(work: Work, steps: Iterable[PlanStep]) -> list[tuple[PlanStep, Verification]]:
    """Return the undone steps whose read-back is open and can be run now."""
    found = ((step, _verification(step)) for step in steps if is_open(step))
    return [(step, declared) for step, declared in found if declared is not None and work.tools.can_read(declared.tool)]


def is_open(step: PlanStep) -> bool:
    """Whether the step is called undone and was never checked, though its manifest says how."""
    return step.record.state is StepState.COMPENSATED and step.record.read_back is ReadBack.UNVERIFIED


def _verification(step: PlanStep) -> Verification | None:
    undo = undo_that_was_used(step)
    return None if undo is None else undo.verification


def settle_read_back(work: Work, step: PlanStep, verification: Verification) -> bool:
    """Read back one undone step; false when it turns out to stand. Without an answer it stays unverified."""
    verdict = read_back(work, step, verification)
    match verdict:
        case Matched():
            _record(work, step, None, {"tool": verification.tool})
        case Mismatched(tool=tool, mismatch=mismatch):
            shown = make_visible(mismatch, limit=ERROR)
            error = f"verification failed: {tool} did not show the expected state after the undo"
            _record(work, step, error, {"tool": tool, "mismatch": shown})
        case _:
            shown = make_visible(verdict.error, limit=ERROR)
            work.note(EventDraft("read_back_failed", step.number, {"tool": verification.tool, "error": shown}))
    return not isinstance(verdict, Mismatched)


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
