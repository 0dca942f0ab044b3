"""Announce calls and settle their outcomes: the two commits of a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db import IntegrityError, transaction

from ledger import queries
from ledger.core.errors import CallKeyTaken, OutcomeConflict
from ledger.core.handles import Handle
from ledger.core.statuses import Move, ReadBack, SettledBy, StepState, may_move, outcome_of
from ledger.core.text import make_visible
from ledger.core.values import EventDraft, Intent, Outcome, StepRecord
from ledger.models import Step
from ledger.operations.journal import LockedRun, append, get_locked_step, insert_step, lock_run, move_step
from ledger.operations.runs import require_open
from reversi_site.kit.transactions import durable, require_transaction

ERROR = 2000
_MOVES = {StepState.SUCCEEDED: Move.SUCCEED, StepState.FAILED: Move.FAIL, StepState.UNCERTAIN: Move.LOSE}


def record_intent(*, run: LockedRun, intent: Intent, actor: str, now: datetime) -> StepRecord:
    """Write the step and its `intended` event; part of the caller's durable block, BEFORE the call.

    Raises RunClosed, and CallKeyTaken when a standing call holds the same key.
    """
    require_transaction()
    require_open(run.row)
    step = _new_step(run, intent, now)
    run.row.next_step += 1
    try:
        with transaction.atomic():
            insert_step(run, step, intent.handle, _intent_data(intent), actor=actor, now=now)
    except IntegrityError as error:
        holder = queries.find_standing_call(intent.call_key) if intent.call_key else None
        if holder is None:
            raise
        raise CallKeyTaken(*holder) from error
    return queries.step_record(step, intent.handle)


def _new_step(run: LockedRun, intent: Intent, now: datetime) -> Step:
    return Step(
        run=run.row,
        number=run.row.next_step,
        tool=intent.tool,
        state=StepState.INTENDED,
        effect=intent.effect,
        upstream=intent.upstream,
        manifest_checksum=intent.manifest_checksum,
        snapshot=dict(intent.snapshot),
        args_digest=run.keyed_digest(intent.args),
        summary=intent.summary,
        depends_on=list(intent.depends_on),
        requires_steps=list(intent.requires_steps),
        call_key=intent.call_key,
        idempotency_key=intent.idempotency_key,
        timeout_ms=intent.timeout_ms,
        observed_by=intent.observed_by,
        unrecoverable=intent.unrecoverable,
        is_contract_rejected=intent.is_contract_rejected,
        intended_at=now,
    )


def _intent_data(intent: Intent) -> dict[str, object]:
    return {
        "tool": intent.tool,
        "effect_class": intent.effect,
        "ledger_id": intent.ledger_id,
        "staged_for": None,
        "manifest": intent.manifest_checksum,
        "summary": intent.summary,
        "reason": intent.reason,
        "violations": [dict(violation) for violation in intent.violations],
        "notes": list(intent.notes),
        "unrecoverable": intent.unrecoverable,
    }


def record_blocked(
    *, run_id: str, tool: str, violations: Sequence[Mapping[str, str]], actor: str, now: datetime
) -> None:
    """Journal that a call was refused and why; there is no step."""
    with durable():
        run = lock_run(run_id)
        body = {"tool": tool, "violations": [dict(violation) for violation in violations]}
        append(run, [EventDraft("blocked", None, body)], actor=actor, now=now)


def record_outcome(
    *, run_id: str, number: int, outcome: Outcome, by: SettledBy, actor: str, now: datetime
) -> StepRecord:
    """Settle a step, once (D13).

    The same outcome again is accepted unchanged. Raises OutcomeConflict for another one; where a person or a lookup
    had settled the step the contradiction is journaled and the step counts as unresolved until resolved again.
    """
    with durable():
        run = lock_run(run_id)
        step = get_locked_step(run, number)
        conflict = _settle(run, step, outcome, by, actor=actor, now=now)
    if conflict is not None:
        raise conflict
    return queries.get_step(run_id, number)


def _settle(
    run: LockedRun, step: Step, outcome: Outcome, by: SettledBy, *, actor: str, now: datetime
) -> OutcomeConflict | None:
    state, settled_by = StepState(step.state), step.settled_by
    is_late = state is StepState.UNCERTAIN and settled_by == SettledBy.SWEEP
    if state is StepState.INTENDED or (is_late and outcome.state is not StepState.UNCERTAIN):
        _move_to_outcome(run, step, outcome, by, is_late=is_late, actor=actor, now=now)
        return None
    if outcome.state in (state, outcome_of(state)):
        return None
    return _refuse_contradiction(run, step, outcome, actor, now)


def _move_to_outcome(
    run: LockedRun, step: Step, outcome: Outcome, by: SettledBy, *, is_late: bool, actor: str, now: datetime
) -> None:
    error = None if outcome.error is None else make_visible(outcome.error, limit=ERROR)
    late = [EventDraft("late", step.number, {"state": outcome.state.value})] if is_late else []
    move_step(
        run,
        step,
        _MOVES[outcome.state],
        actor=actor,
        now=now,
        data={"settled_by": by.value, "error": error, "unrecoverable": outcome.unrecoverable},
        handle=outcome.handle,
        extra=late,
        changes={
            "settled_by": by.value,
            "settled_at": now,
            "error": error,
            "unrecoverable": step.unrecoverable if outcome.unrecoverable is None else outcome.unrecoverable,
        },
    )


def _refuse_contradiction(run: LockedRun, step: Step, outcome: Outcome, actor: str, now: datetime) -> OutcomeConflict:
    recorded = outcome_of(StepState(step.state)) or StepState(step.state)
    is_disputed = step.settled_by in (SettledBy.PERSON, SettledBy.LOOKUP)
    if is_disputed:
        body = {"recorded": recorded.value, "reported": outcome.state.value}
        append(run, [EventDraft("disputed", step.number, body)], actor=actor, now=now)
        _mark_disputed(step)
    return OutcomeConflict(run.row.id, step.number, recorded, outcome.state, is_disputed=is_disputed)


def _mark_disputed(step: Step) -> None:
    """Mark the step; a failed one takes its call key back with that, unless another call holds it by now (D16)."""
    row = Step.objects.filter(pk=step.pk)
    try:
        with transaction.atomic():
            row.update(is_disputed=True)
    except IntegrityError:
        row.update(is_disputed=True, call_key=None)


def sweep_overdue(*, run_id: str, number: int, actor: str, now: datetime) -> bool:
    """Mark a call that never came back uncertain; false when it was settled meanwhile. Never failed (D13)."""
    with durable():
        run = lock_run(run_id)
        step = get_locked_step(run, number)
        if StepState(step.state) is not StepState.INTENDED:
            return False
        outcome = Outcome(StepState.UNCERTAIN, error="no outcome was reported in time")
        _move_to_outcome(run, step, outcome, SettledBy.SWEEP, is_late=False, actor=actor, now=now)
        return True


def resolve_outcome(
    *,
    run: LockedRun,
    number: int,
    state: StepState,
    handle: Handle | None,
    unrecoverable: str | None,
    note: str,
    actor: str,
    now: datetime,
) -> None:
    """Settle by a person's word what nobody else could: an unresolved or disputed step, or an undo in doubt.

    Part of the caller's durable block. `handle` replaces the step's (None keeps it). Raises IllegalTransition when the
    step needs no resolving.
    """
    step = get_locked_step(run, number)
    changes: dict[str, object] = {
        "is_disputed": False,
        "is_undo_outcome_unknown": False,
        "is_by_hand": False,
        "read_back": ReadBack.NOT_DECLARED.value,
        "error": None,
    }
    move = _resolving_move(step, state)
    if move is not Move.DENY_COMPENSATION:
        # That an undo did not happen says nothing about the call: its undo window still counts from its own answer.
        changes.update(settled_by=SettledBy.PERSON.value, settled_at=now)
    if handle is not None:
        changes["unrecoverable"] = unrecoverable
    move_step(
        run,
        step,
        move,
        actor=actor,
        now=now,
        data={"note": note, "from": step.state, "unrecoverable": unrecoverable},
        handle=handle,
        changes=changes,
    )


def reconcile_outcome(
    *,
    run_id: str,
    number: int,
    state: StepState,
    handle: Handle | None,
    unrecoverable: str | None,
    is_hearsay: bool,
    note: str,
    actor: str,
    now: datetime,
) -> StepRecord:
    """Settle an unresolved step by what was found downstream; raises IllegalTransition when it is not unresolved.

    `is_hearsay` says that only the run's own agent saw it: then the step counts as observed by its caller.
    """
    with durable():
        run = lock_run(run_id)
        step = get_locked_step(run, number)
        move = Move.RESOLVE_SUCCEEDED if state is StepState.SUCCEEDED else Move.RESOLVE_FAILED
        changes: dict[str, object] = {"settled_by": SettledBy.LOOKUP.value, "settled_at": now, "error": None}
        if handle is not None:
            changes["unrecoverable"] = unrecoverable
        if is_hearsay:
            changes["observed_by"] = "caller"
        data = {"note": note, "from": step.state, "unrecoverable": unrecoverable, "hearsay": is_hearsay}
        move_step(run, step, move, actor=actor, now=now, data=data, handle=handle, changes=changes)
    return queries.get_step(run_id, number)


def _resolving_move(step: Step, state: StepState) -> Move:
    succeeds = state is StepState.SUCCEEDED
    if step.state == StepState.COMPENSATION_FAILED and succeeds:
        return Move.DENY_COMPENSATION
    overrule = Move.OVERRULE_SUCCEEDED if succeeds else Move.OVERRULE_FAILED
    if may_move(StepState(step.state), overrule, is_disputed=step.is_disputed):
        return overrule
    return Move.RESOLVE_SUCCEEDED if succeeds else Move.RESOLVE_FAILED
