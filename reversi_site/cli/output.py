"""Everything that a command prints on stdout goes through here.

Text that agents, tools or files chose is made harmless for a terminal; JSON is one document and nothing else.
"""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import click

from ledger.core.documents import shown_time

__all__ = [
    "OutputClosed",
    "columns",
    "emit_json",
    "emit_lines",
    "is_watched",
    "note",
    "note_lines",
    "shown_time",
    "visible",
]


class OutputClosed(Exception):
    """Whoever read the output has closed it."""


def emit_lines(lines: Iterable[str]) -> None:
    """Print the lines, control and bidi characters made visible."""
    for line in lines:
        _write(visible(line))


def emit_json(document: Any) -> None:
    """Print one JSON document."""
    _write(json.dumps(document, ensure_ascii=False, indent=2))


def note(text: str) -> None:
    """Say something beside the output, on stderr."""
    click.echo(visible(text), err=True)


def note_lines(lines: Iterable[str]) -> None:
    """Say several lines beside the output."""
    for line in lines:
        note(line)


def is_watched() -> bool:
    """Tell whether a person watches stderr: only then there is progress to show."""
    return sys.stderr.isatty()


def visible(text: str) -> str:
    """Return the text with characters escaped that could steer a terminal or reorder a line."""
    if text.isprintable():
        return text
    return "".join(f"\\u{{{ord(c):x}}}" if _is_steering(c) else c for c in text)


def _is_steering(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, which takes an s unless it is one."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Line the cells of rows up, two spaces between columns; trailing space is cut."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))] if rows else []
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _write(text: str) -> None:
    try:
        click.echo(text)
    except BrokenPipeError:
        raise OutputClosed from None
