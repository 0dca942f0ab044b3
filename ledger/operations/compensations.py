"""Move a step through its undo; every write is guarded by the executor's fence (D23).

These are parts of the caller's durable block, because the executor's own rows (the attempt, the lease) are written
in the same transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ledger.core.errors import IllegalTransition
from ledger.core.statuses import Move, ReadBack, StepState, may_move
from ledger.core.text import make_visible
from ledger.core.values import EventDraft
from ledger.models import Step
from ledger.operations.journal import LockedRun, append, get_locked_step, lock_run, move_step
from ledger.operations.steps import ERROR
from reversi_site.kit.transactions import require_transaction


def lock_for_executor(*, run_id: str, fence: int) -> LockedRun:
    """Lock the run under the executor's fence; raises FenceLost when another one took it over."""
    require_transaction()
    return lock_run(run_id, fence=fence)


def begin_compensation(*, run: LockedRun, number: int, data: Mapping[str, Any], actor: str, now: datetime) -> None:
    """Commit `compensating` before the undo is sent; a step already compensating is taken over."""
    step = get_locked_step(run, number)
    takes_over = StepState(step.state) is StepState.COMPENSATING
    move = Move.TAKE_OVER if takes_over else Move.BEGIN_COMPENSATION
    move_step(run, step, move, actor=actor, now=now, data=data, changes={"error": None})


def complete_compensation(
    *, run: LockedRun, number: int, read_back: ReadBack, data: Mapping[str, Any], actor: str, now: datetime
) -> None:
    """Record that the undo happened; `read_back` says how far that was checked."""
    step = get_locked_step(run, number)
    checked = _read_back_events(number, read_back, data)
    changes = {"read_back": read_back.value, "is_undo_outcome_unknown": False, "error": None}
    move_step(run, step, Move.COMPENSATE, actor=actor, now=now, data=data, extra=checked, changes=changes)


def fail_compensation(
    *,
    run: LockedRun,
    number: int,
    error: str,
    is_outcome_unknown: bool,
    data: Mapping[str, Any],
    actor: str,
    now: datetime,
    extra: tuple[EventDraft, ...] = (),
) -> None:
    """Record that the undo did not happen, or that nobody can tell whether it did."""
    step = get_locked_step(run, number)
    shown = make_visible(error, limit=ERROR)
    body = {**data, "error": shown, "outcome_unknown": is_outcome_unknown}
    changes = {"error": shown, "is_undo_outcome_unknown": is_outcome_unknown}
    move_step(run, step, Move.FAIL_COMPENSATION, actor=actor, now=now, data=body, extra=extra, changes=changes)


def record_read_back(
    *, run: LockedRun, number: int, mismatch: str | None, data: Mapping[str, Any], actor: str, now: datetime
) -> None:
    """Settle an open read-back of a compensated step: it matched, or the undo never happened after all (D23)."""
    step = get_locked_step(run, number)
    if not may_move(StepState(step.state), Move.REVOKE_COMPENSATION):
        raise IllegalTransition(run.row.id, number, Move.REVOKE_COMPENSATION, step.state)
    if mismatch is None:
        append(run, [EventDraft("verified", number, data)], actor=actor, now=now)
        Step.objects.filter(pk=step.pk).update(read_back=ReadBack.VERIFIED)
        return
    shown = make_visible(mismatch, limit=ERROR)
    failed = (EventDraft("verification_failed", number, {**data, "error": shown}),)
    # Its key was free meanwhile and may be another call's by now.
    changes = {"error": shown, "call_key": None, "is_by_hand": False, "read_back": ReadBack.UNVERIFIED.value}
    move_step(run, step, Move.REVOKE_COMPENSATION, actor=actor, now=now, data=data, extra=failed, changes=changes)


def compensate_by_hand(
    *,
    run: LockedRun,
    number: int,
    read_back: ReadBack,
    note: str,
    data: Mapping[str, Any],
    actor: str,
    now: datetime,
) -> None:
    """Record that a person undid the step outside the system (D24)."""
    step = get_locked_step(run, number)
    move_step(
        run,
        step,
        Move.COMPENSATE_BY_HAND,
        actor=actor,
        now=now,
        data={**data, "note": note, "from": step.state},
        extra=_read_back_events(number, read_back, data),
        changes={
            "read_back": read_back.value,
            "is_by_hand": True,
            "is_undo_outcome_unknown": False,
            "is_disputed": False,
            "error": None,
        },
    )


def confirm_compensation(
    *,
    run: LockedRun,
    number: int,
    read_back: ReadBack,
    note: str,
    data: Mapping[str, Any],
    actor: str,
    now: datetime,
) -> None:
    """Record that a person found a disputed step made and undone: the dispute ends, and it stays how it was undone.

    An earlier read-back keeps its word where this time nobody could make it.
    """
    step = get_locked_step(run, number)
    is_seen = read_back is ReadBack.VERIFIED
    move_step(
        run,
        step,
        Move.CONFIRM_COMPENSATION,
        actor=actor,
        now=now,
        data={**data, "note": note, "from": step.state},
        extra=_read_back_events(number, read_back, data) if is_seen else (),
        changes={"is_disputed": False, "read_back": read_back.value if is_seen else step.read_back},
    )


def record_note(
    *, run: LockedRun, number: int | None, kind: str, data: Mapping[str, Any], actor: str, now: datetime
) -> None:
    """Append an event that changes no state: an attempt's answer, a refusal before the send, a failed check."""
    append(run, [EventDraft(kind, number, data)], actor=actor, now=now)


def _read_back_events(number: int, read_back: ReadBack, data: Mapping[str, Any]) -> list[EventDraft]:
    match read_back:
        case ReadBack.VERIFIED:
            return [EventDraft("verified", number, data)]
        case ReadBack.UNVERIFIED:
            reason = "no verifier is available to run the declared read-back"
            return [EventDraft("unverified", number, {"reason": reason})]
        case ReadBack.NOT_DECLARED:
            return []
