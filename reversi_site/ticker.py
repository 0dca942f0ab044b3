"""Look once a second whether a scheduled job is due; any number of tickers may do so at once."""

from __future__ import annotations

import logging
from collections.abc import Callable

from django.db import Error as AnyDatabaseError
from django.db import close_old_connections

from reversi_site.schedules import enqueue_due_jobs, ensure_schedules

TICK_SECONDS = 1.0

logger = logging.getLogger(__name__)


def run_ticker(*, wait: Callable[[float], bool]) -> None:
    """Tick until `wait`, which sleeps for the given seconds, says that it is time to stop.

    A database that is away is no reason to stop: it is tried again with the next tick.
    """
    is_prepared = False
    while True:
        try:
            if not is_prepared:
                ensure_schedules()
                is_prepared = True
            enqueue_due_jobs()
        except AnyDatabaseError as error:
            logger.warning("the schedules cannot be read, trying again: %s", error)
            close_old_connections()
        if wait(TICK_SECONDS):
            return
