"""Rewrite the generated pieces of the documents: `python -m tests.golden`."""

from __future__ import annotations

from tests.golden.pieces import PIECES, replaced
from tests.postgres import REPOSITORY

if __name__ == "__main__":
    for name, piece in PIECES.items():
        path = REPOSITORY / piece.document
        text = path.read_text(encoding="utf-8")
        path.write_text(replaced(text, name, piece.make()), encoding="utf-8")
