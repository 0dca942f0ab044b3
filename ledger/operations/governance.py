"""Write the acts outside runs to their own chain (D28)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ledger.core import chain
from ledger.models import GovernanceEvent, GovernanceHead
from reversi_sdk.canonical import lenient_bytes
from reversi_site.kit.transactions import require_transaction


def record_act(*, kind: str, actor: str, data: Mapping[str, Any], now: datetime) -> int:
    """Append one act to the governance log and return its place; part of the caller's durable block."""
    require_transaction()
    head = GovernanceHead.objects.select_for_update().get(pk=1)
    body = lenient_bytes(dict(data))
    fields = {
        "seq": head.next_seq,
        "kind": kind,
        "at": chain.timestamp(now),
        "actor": actor,
        "data_hash": chain.data_digest(body, b""),
    }
    event = GovernanceEvent(data=body, prev=head.head, hash=chain.event_hash(fields, head.head), **fields)
    event.save(force_insert=True)
    head.next_seq, head.head = head.next_seq + 1, event.hash
    head.save(update_fields=["next_seq", "head"])
    return event.seq
