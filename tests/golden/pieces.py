"""Which pieces of which documents are made from the code, and how they are found and replaced.

A piece stands between `<!-- generated: NAME -->` and `<!-- end -->`; everything else in the file is written by hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from connectors import tool_table
from connectors.catalog import connector_spec
from ledger.core.diagram import step_diagram


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a document and what makes it."""

    document: Path
    make: Callable[[], str]


def _diagram() -> str:
    return f"```mermaid\n{step_diagram()}```\n"


def _fs_tools() -> str:
    return tool_table(connector_spec("fs"))


PIECES: Mapping[str, Piece] = {
    "step diagram": Piece(Path("ledger/README.md"), _diagram),
    "tool table of fs": Piece(Path("connectors/README.md"), _fs_tools),
}


def standing(text: str, name: str) -> str | None:
    """Return the piece as it stands in the text, or None when its markers are not there."""
    found = _pattern(name).search(text)
    return found.group(2).strip("\n") + "\n" if found else None


def replaced(text: str, name: str, piece: str) -> str:
    """Return the text with the piece in its place."""
    return _pattern(name).sub(lambda found: f"{found.group(1)}\n{piece}\n{found.group(3)}", text)


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- generated: {name} -->\n)(.*?)(<!-- end -->\n)", re.DOTALL)
