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
    is_fatal: bool = False


def path_text(path: Path) -> str:
    """Write a path the way errors do: `requires[1].tool`."""
    text = ""
    for part in path:
        if isinstance(part, int) or not part.isprintable() or not part:
            text += f"[{json.dumps(part)}]"
        else:
            text += f".{part}" if text else part
    return text


def canonical_bytes(value: Any) -> bytes:
    """Write a value as RFC 8785 JSON; raises CanonicalError naming the place of what cannot be carried."""
    try:
        return rfc8785.dumps(value)
    except (ValueError, RecursionError):
        flaw = next(find_flaws(value, max_depth=_MAX_DEPTH), Flaw((), "nested too deeply"))
    raise CanonicalError(path=path_text(flaw.path), problem=flaw.problem)


def find_flaws(
    value: Any, *, max_depth: int, max_values: int | None = None, refuses_nul: bool = False
) -> Iterator[Flaw]:
    """List what keeps a value from being canonical JSON, in document order.

    Ends at the first branch deeper than `max_depth`, and after `max_values` values, with a fatal flaw: so a value
    that contains itself ends too.
    """
    seen = 0
    stack: list[tuple[Path, Any]] = [((), value)]
    while stack:
        path, item = stack.pop()
        seen += 1
        fatal = _size_flaw(item, path, seen, max_depth, max_values)
        if fatal is not None:
            yield fatal
            return
        problem = _flaw(item) or (_nul_flaw(item) if refuses_nul else None)
        if problem is not None:
            yield Flaw(path, problem)
        elif isinstance(item, (dict, list, tuple)):
            yield from _key_flaws(item, path, refuses_nul)
            stack.extend(_children(item, path))


def _size_flaw(item: Any, path: Path, seen: int, max_depth: int, max_values: int | None) -> Flaw | None:
    if max_values is not None and seen > max_values:
        return Flaw((), f"holds more than {max_values} values", is_fatal=True)
    if isinstance(item, (dict, list, tuple)) and len(path) >= max_depth:
        return Flaw(path, f"is nested deeper than {max_depth}", is_fatal=True)
    return None


def _children(item: dict[Any, Any] | list[Any] | tuple[Any, ...], path: Path) -> Iterator[tuple[Path, Any]]:
    # Last first: they are taken from a stack.
    if isinstance(item, dict):
        return (((*path, key), item[key]) for key in reversed(item) if isinstance(key, str))
    return (((*path, number), item[number]) for number in reversed(range(len(item))))


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


def _nul_flaw(item: Any) -> str | None:
    return "holds a NUL character" if isinstance(item, str) and "\0" in item else None


def _key_flaws(item: dict[Any, Any] | list[Any] | tuple[Any, ...], path: Path, refuses_nul: bool) -> Iterator[Flaw]:
    for key in item if isinstance(item, dict) else ():
        if not isinstance(key, str):
            yield Flaw(path, f"a key must be a string, not {type(key).__name__}")
        elif not is_scalar_text(key):
            yield Flaw(path, "a key holds a lone surrogate, which is not valid text")
        elif refuses_nul and "\0" in key:
            yield Flaw(path, "a key holds a NUL character")


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
