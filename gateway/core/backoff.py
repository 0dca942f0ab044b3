"""How long to wait before an upstream is started again: longer each time, up to half a minute, never in step."""

from __future__ import annotations

FIRST_S = 0.2
LONGEST_S = 30.0


def restart_wait_s(failures: int, *, chance: float) -> float:
    """Return the wait after so many failures in a row; `chance` in [0, 1) spreads it over the upper half."""
    longest = min(LONGEST_S, FIRST_S * 2.0 ** min(failures, 16))
    return longest * (0.5 + chance / 2)
