"""Values as a person may see them: redacted paths, and what is named like a credential, are `[redacted]` (D14)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from approvals.core.redaction import REDACTED, is_credential
from reversi_sdk.references import Found, Missing, Reference

Finder = Callable[[Reference], Found | Missing]


def redacting(find: Finder, paths: Sequence[Reference]) -> Finder:
    """Return a finder that hides what stands at or under one of the paths, nested values included."""

    def find_shown(reference: Reference) -> Found | Missing:
        found = find(reference)
        if not isinstance(found, Found):
            return found
        if any(isinstance(part, str) and is_credential(part) for part in reference.path):
            return Found(REDACTED)
        value = found.value
        for path in paths:
            if path.root is reference.root:
                value = _hide(value, reference.path, path.path)
        return Found(value)

    return find_shown


def _hide(value: Any, place: tuple[str | int, ...], hidden: tuple[str | int, ...]) -> Any:
    if place[: len(hidden)] == hidden:
        return REDACTED
    if hidden[: len(place)] == place:
        return _hide_inside(value, hidden[len(place) :])
    return value


def _hide_inside(value: Any, path: tuple[str | int, ...]) -> Any:
    if not path:
        return REDACTED
    part, rest = path[0], path[1:]
    match part, value:
        case str(), dict() if part in value:
            return {**value, part: _hide_inside(value[part], rest)}
        case int(), list() if part < len(value):
            return [*value[:part], _hide_inside(value[part], rest), *value[part + 1 :]]
        case _:
            return value
