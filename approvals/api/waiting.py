"""Requests that wait for an answer: a bounded number of them, and none holds a transaction or a connection's state."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import close_old_connections

LONGEST_SECONDS = 60
INTERVAL_SECONDS = 0.25


class Waiters:
    """How many requests of this process wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0

    @contextmanager
    def one_more(self) -> Iterator[bool]:
        """Tell whether one more may wait, and count it for the block."""
        may_wait = self._enter()
        try:
            yield may_wait
        finally:
            if may_wait:
                self._leave()

    def _enter(self) -> bool:
        with self._lock:
            if self._count >= settings.API_APPROVAL_WAITERS:
                return False
            self._count += 1
            return True

    def _leave(self) -> None:
        with self._lock:
            self._count -= 1


WAITERS = Waiters()


def wait_until(is_over: Callable[[], bool], *, seconds: float, waiters: Waiters = WAITERS) -> None:
    """Return when it is over or the time has passed; at once where too many wait already."""
    ends = time.monotonic() + min(seconds, LONGEST_SECONDS)
    with waiters.one_more() as may_wait:
        while may_wait and not is_over():
            left = ends - time.monotonic()
            if left <= 0:
                return
            close_old_connections()
            time.sleep(min(INTERVAL_SECONDS, left))
