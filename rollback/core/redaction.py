"""Values as a person may see them: redacted paths, and what is named like a credential, are `[redacted]` (D14)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from approvals.core.redaction import REDACTED, blank_out, credentials_in, is_credential
from ledger.core.handles import Handle, HandleLost
from reversi_sdk.references import Found, Missing, Reference, Spelling, follow, parse_reference

Finder = Callable[[Reference], Found | Missing]


def redacting(find: Finder, paths: Sequence[Reference]) -> Finder:
    """Return a finder that hides what stands at or under one of the paths, nested values included."""

    def find_shown(reference: Reference) -> Found | Missing:
        found = find(reference)
        if not isinstance(found, Found):
            return found
        if names_credential(reference.path):
            return Found(REDACTED)
        value = found.value
        for path in paths:
            if path.root is reference.root:
                value = _hide(value, reference.path, path.path)
        return Found(without_credentials(value))

    return find_shown


def without_credentials(value: Any) -> Any:
    """Return the value with its members, however deep, hidden that are named like credentials."""
    match value:
        case Mapping():
            return {
                name: REDACTED if is_credential(name) else without_credentials(member) for name, member in value.items()
            }
        case list():
            return [without_credentials(item) for item in value]
        case _:
            return value


def names_credential(path: Sequence[str | int]) -> bool:
    """Whether a part of the path says that a credential stands there."""
    return any(isinstance(part, str) and is_credential(part) for part in path)


def hide_in_text(text: str, handle: Handle | HandleLost, paths: Sequence[Reference]) -> str:
    """Return what a tool said without the values that are never shown: it may repeat what it was called with."""
    if not isinstance(handle, Handle):
        return text
    named = ((parse_reference(key, spelling=Spelling.FLAT), value) for key, value in handle.values.items())
    return blank_out(text, [hidden for reference, value in named for hidden in _hidden(reference, value, paths)])


def _hidden(reference: Reference, value: Any, paths: Sequence[Reference]) -> Iterator[Any]:
    if names_credential(reference.path):
        yield value
    yield from credentials_in(value)
    for path in paths:
        place, hidden = reference.path, path.path
        if path.root is not reference.root:
            continue
        if place[: len(hidden)] == hidden:
            yield value
        elif hidden[: len(place)] == place:
            found = follow(value, hidden[len(place) :])
            if isinstance(found, Found):
                yield found.value


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
