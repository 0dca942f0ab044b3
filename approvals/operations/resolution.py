"""Settle a step by a person's word: what nobody could tell, or two parties contradicted each other about (D13)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from approvals.core.errors import NotResolvable
from approvals.core.undo_handles import handle_with_result, missing_after
from approvals.operations.completion import trusted_manifest
from ledger.core.handles import BeforeRead, Handle
from ledger.core.statuses import StepState
from ledger.core.text import require_text
from ledger.core.values import StepRecord
from ledger.operations.journal import LockedRun
from ledger.operations.steps import resolve_outcome
from ledger.queries import get_step
from reversi_sdk.references import MISSING, Missing

NOTE = 2000
RESOLVED = frozenset({StepState.SUCCEEDED, StepState.FAILED})


def resolve_step(
    *,
    run: LockedRun,
    number: int,
    status: str,
    note: str,
    actor: str,
    now: datetime,
    result: Any | Missing = MISSING,
) -> StepRecord:
    """Record what a person found out downstream; the note says how. Part of the caller's durable block.

    A `result` comes only with `succeeded` and replaces an earlier one; without any, an undo that needs it is marked
    unrecoverable. Raises IllegalTransition when the step needs no resolving.
    """
    if status not in RESOLVED:
        raise NotResolvable(f"status: must be succeeded or failed, not {status!r}")
    if not require_text("note", note, limit=NOTE).strip():
        raise NotResolvable("note: say what was found, and where")
    if status == StepState.FAILED and not isinstance(result, Missing):
        raise NotResolvable("result: a call that failed has none")
    step = get_step(run.row.id, number)
    handle, unrecoverable = corrected_handle(step, result) if status == StepState.SUCCEEDED else (None, None)
    resolve_outcome(
        run=run,
        number=number,
        state=StepState(status),
        handle=handle,
        unrecoverable=unrecoverable,
        note=note,
        actor=actor,
        now=now,
    )
    return get_step(run.row.id, number)


def corrected_handle(step: StepRecord, result: Any | Missing) -> tuple[Handle | None, str | None]:
    """Return the handle of a step that turned out to have succeeded, and why it cannot be undone if so."""
    manifest = trusted_manifest(step)
    if manifest is None or isinstance(manifest, str) or not isinstance(step.handle, Handle):
        return None, step.unrecoverable
    handle = step.handle if isinstance(result, Missing) else handle_with_result(manifest, step.handle, result)
    if handle.before is BeforeRead.MISSING:
        return handle, step.unrecoverable
    return handle, missing_after(manifest, handle)
