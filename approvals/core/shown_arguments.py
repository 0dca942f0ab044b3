"""What an approver is shown of a call: its complete arguments, with nothing in them that hides or must be hidden.

Redacted places, and what is named like a credential, are replaced before anything is stored. Control and bidirectional
characters are made visible in values and in names; two names that look the same afterwards are both shown.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from approvals.core.redaction import REDACTED, is_credential
from ledger.core.text import make_visible
from reversi_sdk.references import Reference, Root

Place = tuple[str | int, ...]


def shown_arguments(args: Mapping[str, Any], redacted: Iterable[Reference]) -> dict[str, Any]:
    """Return the arguments as a person may and must see them."""
    hidden = frozenset(path.path for path in redacted if path.root is Root.ARGS)
    return _shown_object(args, (), hidden)


def _shown(value: Any, place: Place, hidden: frozenset[Place]) -> Any:
    if place in hidden:
        return REDACTED
    match value:
        case str():
            return make_visible(value, limit=sys.maxsize)
        case dict():
            return _shown_object(value, place, hidden)
        case list():
            return [_shown(item, (*place, index), hidden) for index, item in enumerate(value)]
        case _:
            return value


def _shown_object(value: Mapping[str, Any], place: Place, hidden: frozenset[Place]) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for name, member in value.items():
        content = REDACTED if is_credential(name) else _shown(member, (*place, name), hidden)
        shown[_free_name(make_visible(name, limit=sys.maxsize), shown)] = content
    return shown


def _free_name(name: str, taken: Mapping[str, Any]) -> str:
    # A parameter must not vanish behind another one that only looks the same.
    while name in taken:
        name += "′"
    return name
