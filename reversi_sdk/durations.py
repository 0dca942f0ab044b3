"""Durations: a whole number of milliseconds, or a whole number with its unit (`500ms`, `30s`, `15m`, `2h`, `1d`)."""

from __future__ import annotations

import re
from typing import Any, Final

from reversi_sdk.errors import InvalidInput

UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
# A century. Anything longer is a mistake, and would leave the range of a calendar date.
MAX_MS: Final = 36_525 * UNITS_MS["d"]
DURATION_PATTERN: Final = r"[0-9]{1,15}(?:ms|s|m|h|d)"
_TEXT: Final = re.compile(r"([0-9]{1,15})(ms|s|m|h|d)")


class DurationInvalid(InvalidInput):
    """A value is no duration."""

    code = "duration_invalid"


def parse_duration(value: Any) -> int:
    """Read a duration into milliseconds; raises DurationInvalid."""
    match value:
        case bool():
            raise DurationInvalid("true and false are no durations; write milliseconds or a text such as 30s")
        case int():
            return _bounded(value)
        case float():
            return _whole(value)
        case str():
            return _from_text(value)
        case _:
            raise DurationInvalid("a duration is a number of milliseconds or a text such as 500ms, 30s, 15m, 2h or 1d")


def _from_text(text: str) -> int:
    found = _TEXT.fullmatch(text)
    if found is None:
        raise DurationInvalid("not a duration; write a whole number with its unit, such as 500ms, 30s, 15m, 2h or 1d")
    return _bounded(int(found.group(1)) * UNITS_MS[found.group(2)])


def _whole(value: float) -> int:
    if not value.is_integer():
        raise DurationInvalid("a duration is a whole number of milliseconds")
    return _bounded(int(value))


def _bounded(value: int) -> int:
    if value < 0:
        raise DurationInvalid("a duration cannot be negative")
    if value > MAX_MS:
        raise DurationInvalid("a duration cannot be longer than a hundred years")
    return value


def format_duration(ms: int) -> str:
    """Write milliseconds with the largest unit that divides them."""
    if ms == 0:
        return "0ms"
    unit = next(unit for unit in ("d", "h", "m", "s", "ms") if ms % UNITS_MS[unit] == 0)
    return f"{ms // UNITS_MS[unit]}{unit}"
