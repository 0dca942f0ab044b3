"""The journal's values as JSON documents: those of the API."""

from __future__ import annotations

from ledger.core.documents import run_document, step_document

__all__ = ["run_document", "step_document"]
