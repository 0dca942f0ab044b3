"""Open, close and hold runs."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import datetime

from django.db import IntegrityError

from ledger import queries
from ledger.core import chain
from ledger.core.errors import BadField, BadRunId, ForeignRun, RunClosed
from ledger.core.statuses import Mode, RunState
from ledger.core.text import require_text
from ledger.core.values import RUN_ID, EventDraft, RunRecord
from ledger.identifiers import new_ulid
from ledger.models import NAME, Run, RunSalt
from ledger.operations.journal import LockedRun, append, lock_run
from reversi_site.kit.transactions import durable, require_transaction

SALT_BYTES = 32
REASON = 2000


def open_run(
    *,
    principal: str,
    now: datetime,
    run_id: str | None = None,
    actor: str = "",
    tenant: str = "",
    environment: str = "",
    mode: str = Mode.ENFORCE,
    scope: tuple[str, ...] = (),
    reason: str = "",
    labels: Mapping[str, str] | None = None,
) -> tuple[RunRecord, bool]:
    """Open a run, or continue the existing one of that id unchanged; the flag says whether it is new (D11).

    Raises BadRunId and BadField for malformed input, ForeignRun when another principal opened it.
    """
    names = _checked_names(principal=principal, actor=actor, tenant=tenant, environment=environment)
    row = _new_row(run_id, now, names, mode=mode, scope=scope, reason=reason, labels=labels)
    existing = Run.objects.filter(pk=row.id).first()
    if existing is None:
        try:
            with durable():
                return _insert(row, now), True
        except IntegrityError:
            # Another process opened the same id first: continue its run.
            existing = Run.objects.get(pk=row.id)
    if existing.principal != principal:
        raise ForeignRun(row.id)
    return queries.run_record(existing), False


def open_new_run(
    *,
    principal: str,
    now: datetime,
    actor: str = "",
    tenant: str = "",
    environment: str = "",
    mode: str = Mode.ENFORCE,
    scope: tuple[str, ...] = (),
    reason: str = "",
    labels: Mapping[str, str] | None = None,
) -> RunRecord:
    """Open a run under an id of its own. Needs the caller's transaction."""
    require_transaction()
    names = _checked_names(principal=principal, actor=actor, tenant=tenant, environment=environment)
    return _insert(_new_row(None, now, names, mode=mode, scope=scope, reason=reason, labels=labels), now)


def _new_row(
    run_id: str | None,
    now: datetime,
    names: Mapping[str, str],
    *,
    mode: str,
    scope: tuple[str, ...],
    reason: str,
    labels: Mapping[str, str] | None,
) -> Run:
    _require_mode(mode)
    return Run(
        id=f"run_{new_ulid(now)}" if run_id is None else require_run_id(run_id),
        mode=mode,
        head=chain.GENESIS,
        opened_at=now,
        active_at=now,
        scope=[require_text("scope", permission, limit=NAME) for permission in scope],
        reason=require_text("reason", reason, limit=REASON),
        labels=_checked_labels(labels or {}),
        **names,
    )


def _require_mode(mode: str) -> None:
    if mode not in list(Mode):
        raise BadField("mode", f"must be enforce or observe, not {mode!r}")


def _checked_names(**names: str) -> dict[str, str]:
    if not names["principal"]:
        raise BadField("principal", "must not be empty")
    return {field: require_text(field, value, limit=NAME) for field, value in names.items()}


def _checked_labels(labels: Mapping[str, str]) -> dict[str, str]:
    return {
        require_text("labels", name, limit=NAME): require_text(f"labels.{name}", value, limit=NAME)
        for name, value in labels.items()
    }


def require_run_id(run_id: str) -> str:
    """Return the id when it has the form of one; raises BadRunId."""
    if not RUN_ID.fullmatch(run_id):
        raise BadRunId(run_id)
    return run_id


def _insert(row: Run, now: datetime) -> RunRecord:
    salt = secrets.token_bytes(SALT_BYTES)
    row.save(force_insert=True)
    RunSalt(run=row, salt=salt).save(force_insert=True)
    opened = {"mode": row.mode, "scope": row.scope, "reason": row.reason, "labels": row.labels}
    append(LockedRun(row, salt), [EventDraft("opened", None, opened)], actor=row.principal, now=now)
    return queries.run_record(row)


def close_run(*, run_id: str, actor: str, now: datetime) -> RunRecord:
    """Close a run: it takes no more calls. Closing a closed run changes nothing."""
    with durable():
        run = lock_run(run_id)
        close_locked_run(run=run, actor=actor, now=now)
    return queries.run_record(run.row)


def close_locked_run(*, run: LockedRun, actor: str, now: datetime) -> None:
    """Close a run that the caller's transaction holds, unless it is closed already."""
    require_transaction()
    if run.row.state == RunState.OPEN:
        run.row.state, run.row.closed_at = RunState.CLOSED, now
        append(run, [EventDraft("closed")], actor=actor, now=now)


def announce_rollback(*, run_id: str, data: Mapping[str, object], actor: str, now: datetime) -> None:
    """Block new calls from now on, for a rollback that waits for its executor (D23). Needs the caller's transaction."""
    require_transaction()
    run = lock_run(run_id)
    run.row.is_rolling_back = True
    append(run, [EventDraft("rollback_queued", None, data)], actor=actor, now=now)


def take_run(*, run_id: str, actor: str, now: datetime) -> int:
    """Become the run's executor: block new calls and return the new fence (D23). Needs the caller's transaction."""
    require_transaction()
    run = lock_run(run_id)
    run.row.fence += 1
    run.row.is_rolling_back = True
    append(run, [EventDraft("rollback_started", None, {"fence": run.row.fence})], actor=actor, now=now)
    return run.row.fence


def release_run(
    *, run_id: str, fence: int, actor: str, now: datetime, closes: bool, report: Mapping[str, object]
) -> None:
    """End a rollback under its fence: calls pass again unless the run is closed. Needs the caller's transaction."""
    run = lock_run(run_id, fence=fence)
    run.row.is_rolling_back = False
    drafts = [EventDraft("rollback_finished", None, report)]
    if closes and run.row.state == RunState.OPEN:
        run.row.state, run.row.closed_at = RunState.CLOSED, now
        drafts.append(EventDraft("closed"))
    append(run, drafts, actor=actor, now=now)


def require_open(row: Run) -> None:
    """Raise RunClosed when the run takes no calls."""
    if row.state == RunState.CLOSED:
        raise RunClosed(row.id)
