"""What is kept of a result: plain JSON values, and nothing that would have to be guessed.

A result is never refused: the effect has happened. Mappings become objects, sequences lists; enumerations stand for
their values, UUIDs and paths for their text, dates and times for ISO 8601. Whatever else a tool returns stays as it
is, and a handle that would need it finds the value missing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date, datetime, time
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

# Deeper values, and longer numbers, cannot be written by the encoder that seals handles.
DEEPEST = 200
_LONGEST_INTEGER = 10**4000


def as_json(value: Any, depth: int = 0) -> Any:
    """Return the value with what can be converted to JSON converted."""
    if depth > DEEPEST:
        return value
    match value:
        case Enum():
            return as_json(value.value, depth + 1)
        case Mapping():
            return {_key(key): as_json(member, depth + 1) for key, member in value.items()}
        case list() | tuple():
            return [as_json(item, depth + 1) for item in value]
        case UUID() | PurePath():
            return str(value)
        case datetime() | date() | time():
            return value.isoformat()
        case _:
            return value


def _key(key: Any) -> Any:
    plain = as_json(key)
    return plain if isinstance(plain, str) else json.dumps(plain) if isinstance(plain, (int, float)) else str(plain)


def is_storable(value: Any, depth: int = 0) -> bool:
    """Tell whether a value is JSON that a handle can hold exactly."""
    if depth > DEEPEST:
        return False
    match value:
        case None | bool() | str():
            return True
        case int():
            return abs(value) < _LONGEST_INTEGER
        case float():
            return math.isfinite(value)
        case list():
            return all(is_storable(item, depth + 1) for item in value)
        case dict():
            return all(isinstance(key, str) and is_storable(item, depth + 1) for key, item in value.items())
        case _:
            return False
