"""Settle a step by a person's word: the call's outcome, or that the step was undone by hand (D13, D24)."""

from __future__ import annotations

import random
import time
from datetime import datetime
from typing import Any

from approvals.operations.resolution import resolve_step
from ledger.core.statuses import ReadBack, StepState
from ledger.core.values import StepRecord
from ledger.operations.compensations import compensate_by_hand, confirm_compensation, lock_for_executor
from ledger.operations.journal import lock_run
from ledger.queries import get_step
from reversi_sdk.references import MISSING, Missing
from reversi_site.kit.clock import Clock, SystemClock
from reversi_site.kit.transactions import durable
from rollback.core.actions import Kind
from rollback.core.assessment import assess
from rollback.core.errors import NoteRequired, NotUndoneByHand, ReadBackMismatch, StatusUnknown
from rollback.core.jobs import JobKind
from rollback.core.keys import KeyedDigest
from rollback.core.options import RollbackOptions
from rollback.core.ports import NO_TOOLS, Tools
from rollback.core.progress import stay_silent
from rollback.core.steps import PlanStep
from rollback.core.undo import undo_that_was_used
from rollback.models import Attempt
from rollback.operations.execution import Done, perform, worker_name
from rollback.operations.jobs import claim_new
from rollback.operations.reading import Matched, Mismatched, read_back
from rollback.operations.work import Sleep, Work
from rollback.queries import keyed_digest_of, load_step

STATUSES = (StepState.SUCCEEDED, StepState.FAILED, StepState.COMPENSATED)
_FROM_SUCCEEDED = (Kind.UNRECOVERABLE, Kind.UNMANIFESTED)


def resolve(
    *,
    run_id: str,
    number: int,
    status: str,
    note: str,
    actor: str,
    tools: Tools | None = None,
    result: Any | Missing = MISSING,
    clock: Clock | None = None,
    sleep: Sleep = time.sleep,
) -> StepRecord:
    """Settle a step as `succeeded`, `failed` or `compensated`; the note says what was found and where.

    For a step whose undo is in doubt `succeeded` says that the undo did not happen. For a disputed step that is undone
    `compensated` says that it stays so, `failed` that there never was anything to undo. Raises NoteRequired,
    StatusUnknown, IllegalTransition; for `compensated` also RollbackRunning, NotUndoneByHand and ReadBackMismatch.
    """
    time_source = clock or SystemClock()
    if not note.strip():
        raise NoteRequired
    match status:
        case StepState.COMPENSATED:
            return _undone_by_hand(run_id, number, note=note, actor=actor, tools=tools, clock=time_source, sleep=sleep)
        case StepState.SUCCEEDED | StepState.FAILED:
            return _settled(run_id, number, status=status, note=note, actor=actor, result=result, now=time_source.now())
        case _:
            raise StatusUnknown(status, STATUSES)


def _settled(
    run_id: str, number: int, *, status: str, note: str, actor: str, result: Any | Missing, now: datetime
) -> StepRecord:
    with durable():
        run = lock_run(run_id)
        step = resolve_step(run=run, number=number, status=status, note=note, actor=actor, now=now, result=result)
        # What became of the sends so far is said: they cast no doubt on the next undo.
        Attempt.objects.filter(run_id=run_id, step=number).update(is_settled=True)
    return step


def _undone_by_hand(
    run_id: str, number: int, *, note: str, actor: str, tools: Tools | None, clock: Clock, sleep: Sleep
) -> StepRecord:
    _require_may_be_by_hand(run_id, number, clock.now())
    claim = claim_new(
        kind=JobKind.RESOLVE,
        run_id=run_id,
        options=RollbackOptions(),
        actor=actor,
        worker=worker_name(),
        now=clock.now(),
    )
    work = Work(
        claim=claim,
        tools=tools or NO_TOOLS,
        clock=clock,
        sleep=sleep,
        chance=random.random,
        keyed_digest=keyed_digest_of(run_id),
        on_progress=stay_silent,
    )
    perform(work, lambda held: _record_by_hand(held, number, note))
    return get_step(run_id, number)


def _require_may_be_by_hand(run_id: str, number: int, now: datetime) -> PlanStep:
    step = load_step(run_id, number)
    why = _why_not_by_hand(step, now, keyed_digest_of(run_id))
    if why is not None:
        raise NotUndoneByHand(run_id, number, why)
    return step


def _why_not_by_hand(step: PlanStep, now: datetime, keyed_digest: KeyedDigest) -> str | None:
    match step.record.state:
        case StepState.COMPENSATING | StepState.COMPENSATION_FAILED:
            return None
        case StepState.COMPENSATED:
            return None if step.record.is_disputed else "it is already undone"
        case StepState.SUCCEEDED if step.record.is_disputed:
            return "its call is disputed; resolve it succeeded or failed first"
        case StepState.SUCCEEDED:
            kind = assess(step, keyed_digest=keyed_digest, now=now).kind
            return None if kind in _FROM_SUCCEEDED else f"its plan says {kind.value}; roll it back instead"
        case state:
            return f"its call is {state.value}; resolve it succeeded or failed first"


def _record_by_hand(work: Work, number: int, note: str) -> Done:
    now = work.clock.now()
    step = _require_may_be_by_hand(work.run_id, number, now)
    read_back_state, data = _look(work, step)
    is_undone = step.record.state is StepState.COMPENSATED
    record = confirm_compensation if is_undone else compensate_by_hand
    with durable():
        record(
            run=lock_for_executor(run_id=work.run_id, fence=work.claim.fence),
            number=number,
            read_back=read_back_state,
            note=note,
            data=data,
            actor=work.claim.actor,
            now=now,
        )
    return Done()


def _look(work: Work, step: PlanStep) -> tuple[ReadBack, dict[str, str]]:
    """Run the declared read-back; raises ReadBackMismatch when the world contradicts the claim."""
    undo = undo_that_was_used(step)
    if undo is None or undo.verification is None:
        return ReadBack.NOT_DECLARED, {}
    if not work.tools.at(step.record.upstream).can_read(undo.verification.tool):
        return ReadBack.UNVERIFIED, {}
    verdict = read_back(work, step, undo.verification)
    if isinstance(verdict, Mismatched):
        raise ReadBackMismatch(work.run_id, step.number, verdict.tool, verdict.mismatch)
    found = ReadBack.VERIFIED if isinstance(verdict, Matched) else ReadBack.UNVERIFIED
    return found, {"read_back": verdict.tool}
