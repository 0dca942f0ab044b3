"""What leaves the process: plain JSON, with whatever is none left out rather than guessed.

The effect of a call has happened when its result is sent, so nothing in it may be refused. A value that a handle
would need and that was left out is missing there, and the plan says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reversi_sdk.plain_values import as_json, is_storable
from reversi_sdk.redaction import hide
from reversi_sdk.references import Spelling, parse_reference, spelling_of

ABSENT = object()
LONGEST_ERROR = 2000


def sendable(value: Any) -> Any:
    """Return the value as JSON can carry it, or ABSENT when nothing of it can be carried."""
    plain = as_json(value)
    return plain if is_storable(plain) else _carried(plain)


def _carried(plain: Any) -> Any:
    match plain:
        case dict():
            members = {key: sendable(member) for key, member in plain.items()}
            return {key: member for key, member in members.items() if member is not ABSENT}
        case list():
            items = (sendable(item) for item in plain)
            return [None if item is ABSENT else item for item in items]
        case _:
            return ABSENT


def without_redacted(text: str, args: Mapping[str, Any], places: Iterable[str]) -> str:
    """Return the text without the values that stand at the places that the server named."""
    paths = [parse_reference(place, spelling=spelling_of(place, default=Spelling.CONTRACT)) for place in places]
    return hide(text, args, paths)


def error_text(error: BaseException) -> str:
    """Return how an exception is told to the server."""
    text = str(error)
    kind = type(error).__name__
    return (f"{kind}: {text}" if text else kind)[:LONGEST_ERROR]


def read_error(error: BaseException) -> str:
    """Return how a failed read is told: in its own words alone, which a manifest may know."""
    return (str(error) or type(error).__name__)[:LONGEST_ERROR]
