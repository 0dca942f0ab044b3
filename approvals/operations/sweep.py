"""Settle what never came back: a call past its time-out plus grace becomes uncertain, never failed (D13)."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings

from ledger.operations.steps import sweep_overdue
from ledger.queries import list_overdue

ACTOR = "reversi:sweep"
BATCH = 500


def sweep_timeouts(*, now: datetime, grace_ms: int | None = None) -> int:
    """Mark every overdue call uncertain and return how many; each in a transaction of its own."""
    grace = settings.SWEEP_GRACE_MS if grace_ms is None else grace_ms
    swept = 0
    while places := list_overdue(now=now, grace_ms=grace, limit=BATCH):
        swept += sum(sweep_overdue(run_id=run_id, number=number, actor=ACTOR, now=now) for run_id, number in places)
    return swept
