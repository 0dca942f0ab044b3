"""Taking redacted values out of a text: of an error, say, that quotes what it was given (D14)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reversi_sdk.references import Found, Reference, Root, look_up

REDACTED = "[redacted]"
# Shorter values stand in a text by chance, and replacing them would only garble it.
SHORTEST = 4


def hide(text: str, args: Mapping[str, Any], paths: Iterable[Reference]) -> str:
    """Return the text without the values that stand at redacted paths of the arguments."""
    roots = {Root.ARGS: args}
    found = (look_up(path, roots) for path in paths)
    values = {value for item in found if isinstance(item, Found) for value in _texts(item.value)}
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, REDACTED)
    return text


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif value is not None and not isinstance(value, bool) and len(str(value)) >= SHORTEST:
        yield str(value)
