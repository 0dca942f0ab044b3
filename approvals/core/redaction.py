"""What is never shown: the declared paths, and by default whatever is named like a credential (D14).

A value is named where it stands in the call, and also by the argument of a follow-up that it is handed to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from approvals.core.follow_ups import named_values
from reversi_sdk.model import Manifest
from reversi_sdk.references import (
    Found,
    ListValue,
    MapValue,
    ObjectValue,
    Reference,
    Root,
    Spelling,
    look_up,
    parse_reference,
    references_of,
    spelling_of,
)

REDACTED = "[redacted]"
# Shorter values stand in a text by chance, and replacing them would only garble it.
SHORTEST = 4
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_CREDENTIALS = frozenset(
    {
        "apikey",
        "auth",
        "authorization",
        "bearer",
        "cookie",
        "credential",
        "credentials",
        "passphrase",
        "passwd",
        "password",
        "pin",
        "pwd",
        "secret",
        "token",
    }
)
_KEYS = frozenset({"api", "access", "private", "signing", "encryption", "secret"})


def redaction_paths(manifest: Manifest | None, configured: Sequence[str]) -> tuple[Reference, ...]:
    """Return the manifest's redaction paths, the deployment's, and what a follow-up takes as a credential."""
    ours = tuple(parse_reference(text, spelling=spelling_of(text, default=Spelling.CONTRACT)) for text in configured)
    return ours if manifest is None else (*manifest.redaction, *ours, *_handed_on(manifest))


def _handed_on(manifest: Manifest) -> Iterator[Reference]:
    for root in Root:
        for name, value in named_values(manifest, root):
            yield from (reference for reference in _as_credentials(name, value) if reference.root is root)


def _as_credentials(name: str, value: MapValue) -> Iterator[Reference]:
    match value:
        case _ if is_credential(name):
            yield from references_of(value)
        case ObjectValue(members=members):
            for inner, member in members.items():
                yield from _as_credentials(inner, member)
        case ListValue(items=items):
            for item in items:
                yield from _as_credentials("", item)
        case _:
            return


def is_redacted(reference: Reference, paths: Iterable[Reference]) -> bool:
    """Tell whether a place lies in, or contains, a redacted one."""
    return any(
        path.root is reference.root and all(a == b for a, b in zip(path.path, reference.path, strict=False))
        for path in paths
    )


def is_credential(name: str) -> bool:
    """Tell whether an argument's name says that its value is a credential."""
    words = [word.lower() for word in _WORDS.findall(name)]
    is_key = any(first in _KEYS and second == "key" for first, second in pairwise(words))
    return is_key or not _CREDENTIALS.isdisjoint(words)


def hide(text: str, args: Mapping[str, Any], paths: Iterable[Reference]) -> str:
    """Return the text without the arguments that stand at redacted paths or are named like credentials."""
    roots = {Root.ARGS: args}
    found = (look_up(path, roots) for path in paths)
    declared = (item.value for item in found if isinstance(item, Found))
    return blank_out(text, (*declared, *credentials_in(args)))


def blank_out(text: str, values: Iterable[Any]) -> str:
    """Return the text without these values, nested ones included."""
    hidden = {each for value in values for each in _texts(value)}
    for each in sorted(hidden, key=len, reverse=True):
        text = text.replace(each, REDACTED)
    return text


def credentials_in(value: Any) -> Iterator[Any]:
    """Yield the members of a value, however deep, that are named like credentials."""
    match value:
        case Mapping():
            for name, member in value.items():
                yield from (member,) if is_credential(name) else credentials_in(member)
        case list():
            for item in value:
                yield from credentials_in(item)
        case _:
            return


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif value is not None and not isinstance(value, bool) and len(str(value)) >= SHORTEST:
        yield str(value)
