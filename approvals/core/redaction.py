"""What is never shown: the declared paths, and by default whatever is named like a credential (D14)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from reversi_sdk.model import Manifest
from reversi_sdk.redaction import REDACTED, hide
from reversi_sdk.references import Reference, Spelling, parse_reference, spelling_of

__all__ = ["REDACTED", "hide", "is_credential", "is_redacted", "redaction_paths"]

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
