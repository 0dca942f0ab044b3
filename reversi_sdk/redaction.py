"""What is never shown in a text: what is named like a credential, and what stands at a redacted path (D14)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from reversi_sdk.references import Found, Reference, Root, look_up

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
