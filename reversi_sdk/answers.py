"""How the answer of a declared read is looked at: only chosen items of a list, and lists without their order (D108)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reversi_sdk.canonical import lenient_bytes
from reversi_sdk.plain_values import DEEPEST
from reversi_sdk.references import Found, follow, parse_path


def narrowed(answer: Any, among: Mapping[str, Any]) -> Found | str:
    """Return the answer with only the listed items at each of the paths, or why that cannot be done.

    An item counts as listed when the list holds its equal, or an object that has all of the item's members: what a
    caller sent beside them, and the tool dropped, makes no other thing of it.
    """
    for path, listed in among.items():
        parts = parse_path(path)
        found = follow(answer, parts)
        if not isinstance(listed, list):
            return f"`{path}` cannot be narrowed: what it is compared with is no list"
        if not isinstance(found, Found) or not isinstance(found.value, list):
            return f"`{path}` of the answer is no list"
        listing = _Listing(listed)
        answer = _replaced(answer, parts, [item for item in found.value if listing.has(item)])
    return Found(answer)


class _Listing:
    """A list that is asked for many items: its items are written once for each set of names they are compared by."""

    def __init__(self, items: Sequence[Any]) -> None:
        self._objects = [item for item in items if isinstance(item, dict)]
        self._others = {lenient_bytes(item) for item in items if not isinstance(item, dict)}
        self._by_names: dict[frozenset[str], set[bytes]] = {}

    def has(self, item: Any) -> bool:
        """Tell whether the item, or an object that has all of its members, is listed."""
        known = self._reduced_to(frozenset(item)) if isinstance(item, dict) else self._others
        return lenient_bytes(item) in known

    def _reduced_to(self, names: frozenset[str]) -> set[bytes]:
        if names not in self._by_names:
            alike = (item for item in self._objects if names <= item.keys())
            self._by_names[names] = {lenient_bytes({name: item[name] for name in names}) for item in alike}
        return self._by_names[names]


def _replaced(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    if not path:
        return new
    first, rest = path[0], path[1:]
    if isinstance(value, list):
        return [_replaced(item, rest, new) if number == first else item for number, item in enumerate(value)]
    return {**value, first: _replaced(value[first], rest, new)}


def unordered(value: Any, depth: int = 0) -> Any:
    """Return the value with every list in it in one fixed order; repeated items stay repeated.

    What lies deeper than anything that can be kept of a call stays as it is.
    """
    match value:
        case list() if depth <= DEEPEST:
            return sorted((unordered(item, depth + 1) for item in value), key=lenient_bytes)
        case dict() if depth <= DEEPEST:
            return {name: unordered(member, depth + 1) for name, member in value.items()}
        case _:
            return value
