"""How long to wait before the next try: doubling, capped, and spread so that many do not knock at once."""

from __future__ import annotations

from dataclasses import dataclass

from rollback.core.errors import OptionsInvalid

MOST_ATTEMPTS = 10
MOST_READ_WAIT_MS = 300_000


@dataclass(frozen=True, slots=True)
class Retrying:
    """How often an undo is sent in one job, and how long to wait in between."""

    attempts: int = 1
    base_ms: int = 250
    max_ms: int = 30_000

    def __post_init__(self) -> None:
        if not 1 <= self.attempts <= MOST_ATTEMPTS:
            raise OptionsInvalid(f"retries: from 1 to {MOST_ATTEMPTS}, not {self.attempts}")
        if self.base_ms < 0 or self.max_ms < 0:
            raise OptionsInvalid("retry delays cannot be negative")


def delay_ms(retrying: Retrying, *, tries: int, chance: float) -> int:
    """Return the wait after `tries` tries; `chance` in [0, 1) spreads it over the upper half."""
    longest = min(retrying.max_ms, retrying.base_ms << (tries - 1))
    return round(longest * (0.5 + chance / 2))


def doubled_ms(base_ms: int, tries: int) -> int:
    """Return the wait of a read-back after `tries` reads."""
    return min(base_ms << (tries - 1), MOST_READ_WAIT_MS)
