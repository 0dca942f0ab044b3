"""The innermost write: lock a run, append events to its chain, move a step. Nothing else writes these tables.

Every function here runs inside the caller's durable block. Locking the run row serialises its chain, and only its;
on SQLite the IMMEDIATE transaction already holds the one write lock.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ledger.core import chain
from ledger.core.errors import FenceLost, IllegalTransition, RunNotFound, StepNotFound
from ledger.core.handles import Handle
from ledger.core.sealing import NONCE_BYTES, Binding, SealedHandle
from ledger.core.statuses import HANDLE_EVENTS, RULES, Move, StepState, may_move
from ledger.core.values import EventDraft
from ledger.key_ring import key_ring
from ledger.models import Event, EventData, Run, Step, UndoHandle
from reversi_sdk.canonical import lenient_bytes
from reversi_site.kit.transactions import require_transaction

_HEAD_COLUMNS = (
    "next_seq",
    "head",
    "next_step",
    "active_at",
    "state",
    "closed_at",
    "is_rolling_back",
    "fence",
)


@dataclass(slots=True)
class LockedRun:
    """A run whose row is held by this transaction; appending moves its head."""

    row: Run
    salt: bytes

    def keyed_digest(self, data: bytes) -> str:
        """Return HMAC-SHA-256 of `data` under the run's salt."""
        return hmac.new(self.salt, data, hashlib.sha256).hexdigest()


def lock_run(run_id: str, *, fence: int | None = None) -> LockedRun:
    """Lock the run for writing; raises RunNotFound, or FenceLost when `fence` is no longer the run's."""
    require_transaction()
    row = Run.objects.select_related("salt").select_for_update(of=("self",)).filter(pk=run_id).first()
    if row is None:
        raise RunNotFound(run_id)
    if fence is not None and row.fence != fence:
        raise FenceLost(run_id, fence)
    salt = getattr(row, "salt", None)
    return LockedRun(row, bytes(salt.salt) if salt is not None else b"")


def append(run: LockedRun, drafts: Sequence[EventDraft], *, actor: str, now: datetime) -> None:
    """Append events to the chain and move its head; the caller saves nothing itself."""
    row, at = run.row, chain.timestamp(now)
    events, payloads = [], []
    for draft in drafts:
        data = lenient_bytes(dict(draft.data)) if draft.data else None
        fields = {
            "run": row.id,
            "seq": row.next_seq,
            "kind": draft.kind,
            "at": at,
            "actor": actor,
            "step": draft.step,
            "data_hash": chain.data_digest(data, run.salt),
        }
        event = Event(run=row, prev=row.head, hash=chain.event_hash(fields, row.head), **_columns(fields))
        row.next_seq, row.head = row.next_seq + 1, event.hash
        events.append(event)
        payloads.append(data)
    Event.objects.bulk_create(events)
    EventData.objects.bulk_create(
        [EventData(event=event, data=data) for event, data in zip(events, payloads, strict=True) if data is not None]
    )
    row.active_at = now
    row.save(update_fields=_HEAD_COLUMNS)


def _columns(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != "run"}


def get_locked_step(run: LockedRun, number: int) -> Step:
    """Return the step's row; raises StepNotFound."""
    step = Step.objects.filter(run=run.row, number=number).first()
    if step is None:
        raise StepNotFound(run.row.id, number)
    return step


def move_step(
    run: LockedRun,
    step: Step,
    move: Move,
    *,
    actor: str,
    now: datetime,
    data: Mapping[str, Any] | None = None,
    handle: Handle | None = None,
    extra: Sequence[EventDraft] = (),
    changes: Mapping[str, Any] | None = None,
) -> Step:
    """Change a step's state: the one place where that happens.

    A conditional update on the old state, with its event in the same transaction; raises IllegalTransition when the
    step stands elsewhere or another writer moved it first. `extra` events follow the move's own; `changes` are the
    other columns that move with it.
    """
    rule = RULES[move]
    if not may_move(StepState(step.state), move, is_disputed=step.is_disputed):
        raise IllegalTransition(run.row.id, step.number, move, step.state)
    body = {**(data or {}), **_handle_digest(handle)}
    drafts = [EventDraft(rule.event, step.number, body), *extra]
    append(run, drafts, actor=actor, now=now)
    columns = {"state": rule.target.value, **(changes or {})}
    if handle is not None:
        _require_handle_event(rule.event)
        _replace_handle(run, step, handle)
    moved = Step.objects.filter(pk=step.pk, state=step.state).update(**columns)
    if moved != 1:
        raise IllegalTransition(run.row.id, step.number, move, step.state)
    for name, value in columns.items():
        setattr(step, name, value)
    return step


def insert_step(
    run: LockedRun, step: Step, handle: Handle, data: Mapping[str, Any], *, actor: str, now: datetime
) -> Step:
    """Insert a step with its handle and its `intended` event; IntegrityError when its call key is held."""
    draft = EventDraft("intended", step.number, {**data, **_handle_digest(handle)})
    append(run, [draft], actor=actor, now=now)
    step.save(force_insert=True)
    UndoHandle(step=step, **_sealed_columns(run, step, handle)).save(force_insert=True)
    return step


def _handle_digest(handle: Handle | None) -> dict[str, str]:
    return {} if handle is None else {"handle_digest": key_ring().digest(handle)}


def _require_handle_event(kind: str) -> None:
    # A handle whose digest no reader looks for would be lost.
    if kind not in HANDLE_EVENTS:
        raise ValueError(f"an event {kind} cannot carry an undo handle")


def _replace_handle(run: LockedRun, step: Step, handle: Handle) -> None:
    columns = _sealed_columns(run, step, handle)
    if UndoHandle.objects.filter(step=step).update(**columns) == 0:
        UndoHandle(step=step, **columns).save(force_insert=True)


def _sealed_columns(run: LockedRun, step: Step, handle: Handle) -> dict[str, Any]:
    binding = Binding(run.row.id, step.number, step.manifest_checksum)
    sealed: SealedHandle = key_ring().seal(handle, binding, secrets.token_bytes(NONCE_BYTES))
    return {"key_id": sealed.key_id, "nonce": sealed.nonce, "ciphertext": sealed.ciphertext}
