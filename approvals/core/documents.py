"""Halts as JSON documents: the same over HTTP and on the command line."""

from __future__ import annotations

from typing import Any

from approvals.core.halts import HaltRecord
from ledger.core.documents import shown_time


def halt_document(record: HaltRecord) -> dict[str, Any]:
    """Return a halt; its scope names the fields it names."""
    return {
        "id": record.id,
        "reason": record.reason,
        "scope": record.scope.to_json(),
        "added_by": record.added_by,
        "added_at": shown_time(record.added_at),
        "lifted_by": record.lifted_by,
        "lifted_at": shown_time(record.lifted_at),
    }
