"""The one canonical form: RFC 8785 JSON (D6).

`canonical_bytes` is for what a person signs or a caller sends: whatever cannot be carried exactly is refused, and
the error names its place. `lenient_bytes` is for what has already happened: a result is never refused for its
numbers, so an integer of 2^53 and more stands there in its decimal digits.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import rfc8785

from reversi_sdk.errors import InvalidInput

_SAFE: Final = 2**53 - 1
_MAX_DEPTH: Final = 512

Path = tuple[str | int, ...]


class CanonicalError(InvalidInput):
    """A value has no canonical form; `path` says where."""

    code = "not_canonical"

    def __init__(self, *, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.path = path
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Flaw:
    """Why one place of a value cannot be carried as canonical JSON."""

    path: Path
    problem: str


def path_text(path: Path) -> str:
    """Write a path the way errors do: `requires[1].tool`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else (f".{part}" if text else part)
    return text


def canonical_bytes(value: Any) -> bytes:
    """Write a value as RFC 8785 JSON; raises CanonicalError naming the place of what cannot be carried."""
    try:
        return rfc8785.dumps(value)
    except (ValueError, RecursionError):
        flaw = next(find_flaws(value, max_depth=_MAX_DEPTH), Flaw((), "nested too deeply"))
    raise CanonicalError(path=path_text(flaw.path), problem=flaw.problem)


def find_flaws(value: Any, *, max_depth: int) -> Iterator[Flaw]:
    """List what keeps a value from being canonical JSON, in document order.

    A branch deeper than `max_depth` is reported once and not entered, so a value that contains itself ends too.
    """
    stack: list[tuple[Path, Any]] = [((), value)]
    while stack:
        path, item = stack.pop()
        problem = _flaw(item)
        if problem is None and isinstance(item, (dict, list, tuple)) and len(path) >= max_depth:
            problem = f"nested deeper than {max_depth}"
        if problem is not None:
            yield Flaw(path, problem)
        elif isinstance(item, dict):
            yield from _key_flaws(item, path)
            stack.extend(((*path, key), item[key]) for key in reversed(item) if isinstance(key, str))
        elif isinstance(item, (list, tuple)):
            stack.extend(((*path, number), item[number]) for number in reversed(range(len(item))))


def _flaw(item: Any) -> str | None:
    match item:
        case None | bool():
            return None
        case int():
            return (
                None if -_SAFE <= item <= _SAFE else "integers of 2^53 and more cannot be carried exactly; use a string"
            )
        case float():
            return None if math.isfinite(item) else "NaN and infinite numbers are not JSON"
        case str():
            return None if is_scalar_text(item) else "a lone surrogate is not valid text"
        case dict() | list() | tuple():
            return None
        case _:
            return f"{type(item).__name__} is not a JSON value"


def _key_flaws(item: dict[Any, Any], path: Path) -> Iterator[Flaw]:
    for key in item:
        if not isinstance(key, str):
            yield Flaw(path, f"a key must be a string, not {type(key).__name__}")
        elif not is_scalar_text(key):
            yield Flaw(path, "a key holds a lone surrogate, which is not valid text")


def is_scalar_text(text: str) -> bool:
    """Whether a text can be written as UTF-8, which a lone surrogate cannot."""
    return not any("\ud800" <= character <= "\udfff" for character in text) if not text.isascii() else True


def lenient_bytes(value: Any) -> bytes:
    """Write whatever `json.loads` can produce, without ever refusing it.

    As `canonical_bytes`, with big integers in exact digits, NaN and infinities as texts, and lone surrogates
    escaped. Works without recursion: an answer may be nested as deeply as its parser allowed.
    """
    parts: list[str] = []
    stack: list[Any] = [_Open(value)]
    while stack:
        item = stack.pop()
        if isinstance(item, _Open):
            _open(item.value, parts, stack)
        else:
            parts.append(item)
    return "".join(parts).encode("utf-8")


@dataclass(frozen=True, slots=True)
class _Open:
    """A value still to be written, as opposed to a text that is."""

    value: Any


def _open(value: Any, parts: list[str], stack: list[Any]) -> None:
    if isinstance(value, dict):
        parts.append("{")
        stack.append("}")
        members = sorted(((str(key), member) for key, member in value.items()), key=_utf16)
        for number, (key, member) in reversed(list(enumerate(members))):
            stack.extend((_Open(member), f"{',' if number else ''}{_text(key)}:"))
    elif isinstance(value, (list, tuple)):
        parts.append("[")
        stack.append("]")
        for number, item in reversed(list(enumerate(value))):
            stack.extend((_Open(item), "," if number else ""))
    else:
        parts.append(scalar_text(value))


def _utf16(member: tuple[str, Any]) -> bytes:
    return member[0].encode("utf-16-be", "surrogatepass")


def scalar_text(value: Any) -> str:
    """Write one plain value as lenient JSON."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return int.__repr__(value)
        case float():
            return rfc8785.dumps(value).decode() if math.isfinite(value) else json.dumps(json.dumps(value))
        case _:
            return _text(str(value))


def _text(text: str) -> str:
    written = json.dumps(text, ensure_ascii=False)
    if is_scalar_text(text):
        return written
    return "".join(f"\\u{ord(c):04x}" if "\ud800" <= c <= "\udfff" else c for c in written)


def sha256_hex(data: bytes) -> str:
    """The SHA-256 of some bytes, in lower-case hex."""
    return hashlib.sha256(data).hexdigest()
