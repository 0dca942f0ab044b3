"""What is never shown: the declared paths, and by default whatever is named like a credential (D14)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from reversi_sdk.model import Manifest
from reversi_sdk.references import Found, Reference, Root, Spelling, look_up, parse_reference, spelling_of

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
    """Return the manifest's redaction paths and the deployment's."""
    declared = manifest.redaction if manifest is not None else ()
    ours = (parse_reference(text, spelling=spelling_of(text, default=Spelling.CONTRACT)) for text in configured)
    return (*declared, *ours)


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
    return blank_out(text, (*declared, *_credentials(args)))


def blank_out(text: str, values: Iterable[Any]) -> str:
    """Return the text without these values, nested ones included."""
    hidden = {each for value in values for each in _texts(value)}
    for each in sorted(hidden, key=len, reverse=True):
        text = text.replace(each, REDACTED)
    return text


def _credentials(value: Any) -> Iterator[Any]:
    match value:
        case Mapping():
            for name, member in value.items():
                yield from (member,) if is_credential(name) else _credentials(member)
        case list():
            for item in value:
                yield from _credentials(item)
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
