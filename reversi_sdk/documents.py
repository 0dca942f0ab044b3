"""A document read from a file: its value, and where each part of it stands.

Files are UTF-8, at most 1 MiB, nested at most 64 deep. Every refusal names file, line and column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from reversi_sdk.canonical import Path
from reversi_sdk.errors import InvalidInput

MAX_BYTES: Final = 1024 * 1024
MAX_DEPTH: Final = 64
TOO_DEEP: Final = f"is nested deeper than {MAX_DEPTH}"
NOT_FINITE: Final = "NaN and infinite numbers are not allowed"
TOO_LONG_NUMBER: Final = "the number is too long"
MAX_NUMBER_LENGTH: Final = 400

_LINE_END: Final = re.compile(r"\r\n|\r|\n")


class DocumentInvalid(InvalidInput):
    """A file is no sound document; `problem` says why, at `line` and `column`, both counted from one."""

    code = "document_invalid"

    def __init__(self, *, name: str, line: int, column: int, problem: str) -> None:
        super().__init__(f"{name}:{line}:{column}: {problem}")
        self.name = name
        self.line = line
        self.column = column
        self.problem = problem


@dataclass(slots=True)
class Placed:
    """A value and its place; a member of an object stands where its key does."""

    value: Any
    line: int
    column: int
    members: dict[str | int, Placed] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed file."""

    root: Placed

    @property
    def value(self) -> Any:
        """What the document says."""
        return self.root.value

    def locate(self, path: Path) -> tuple[int, int]:
        """Line and column of a path, or of the nearest part around it that exists."""
        placed = self.root
        for part in path:
            inner = placed.members.get(part)
            if inner is None:
                break
            placed = inner
        return placed.line, placed.column


def decode(data: bytes, *, name: str, error: type[DocumentInvalid]) -> str:
    """Read the bytes of a file as UTF-8 text, with or without a byte order mark."""
    if len(data) > MAX_BYTES:
        raise error(name=name, line=1, column=1, problem=f"is larger than {MAX_BYTES} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as failure:
        line, column = position_in(data[: failure.start].decode("utf-8", "replace"))
        raise error(name=name, line=line, column=column, problem="is not UTF-8") from None
    if "\0" in text:
        line, column = position_in(text[: text.index("\0")])
        raise error(name=name, line=line, column=column, problem="holds a NUL character")
    return text


def position_in(before: str) -> tuple[int, int]:
    """Line and column of what follows a text."""
    lines = _LINE_END.split(before)
    return len(lines), len(lines[-1]) + 1
