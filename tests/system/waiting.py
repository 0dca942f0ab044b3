"""Wait for what another process does, with an end."""

from __future__ import annotations

import time
from collections.abc import Callable

POLL_S = 0.1


def wait_until(is_true: Callable[[], bool], *, what: str, limit_s: float = 60) -> None:
    """Return once `is_true`; fails after the limit, naming what did not happen."""
    ends_at = time.monotonic() + limit_s
    while not is_true():
        assert time.monotonic() < ends_at, f"did not happen within {limit_s} s: {what}"
        time.sleep(POLL_S)
