"""Settle what never came back: a call past its time-out plus grace becomes uncertain, never failed (D13).

Each call is swept by itself: one whose run is damaged is logged and tried again the next time, and the others do not
wait for it.
"""

from __future__ import annotations

import logging
from datetime import datetime

from django.conf import settings
from django.db import Error as AnyDatabaseError

from ledger.operations.steps import sweep_overdue
from ledger.queries import list_overdue
from reversi_sdk.errors import ReversiError

ACTOR = "reversi:sweep"
BATCH = 500

logger = logging.getLogger(__name__)


def sweep_timeouts(*, now: datetime, grace_ms: int | None = None) -> int:
    """Mark every overdue call uncertain and return how many; each in a transaction of its own."""
    grace = settings.SWEEP_GRACE_MS if grace_ms is None else grace_ms
    swept, left = 0, set[tuple[str, int]]()
    while places := set(list_overdue(now=now, grace_ms=grace, limit=BATCH + len(left))) - left:
        unswept = {place for place in places if not _try_to_sweep(*place, now)}
        swept += len(places - unswept)
        left |= unswept
    return swept


def _try_to_sweep(run_id: str, number: int, now: datetime) -> bool:
    try:
        return sweep_overdue(run_id=run_id, number=number, actor=ACTOR, now=now)
    except (AnyDatabaseError, ReversiError) as error:
        logger.error("step %s of run %s could not be swept: %s", number, run_id, error)
        return False
