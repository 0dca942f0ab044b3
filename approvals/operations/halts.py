"""Add and lift halts (D19); each act is also an entry of the governance log."""

from __future__ import annotations

import uuid
from datetime import datetime

from approvals.core.errors import BadCall, HaltNotFound
from approvals.core.halts import HaltRecord, HaltScope, call_fields, halts_call
from approvals.models import GLOB, NAME, Halt
from approvals.queries import halt_record
from ledger.core.text import require_text
from ledger.operations.governance import record_act
from ledger.queries import list_calls_in_flight
from reversi_site.kit.transactions import durable

REASON = 500


def add_halt(*, reason: str, scope: HaltScope, actor: str, now: datetime) -> tuple[HaltRecord, int]:
    """Stop new calls that the scope matches, in every process, from when this returns.

    Also returns how many matching calls are in flight: they were announced before and nobody stops them.
    """
    row = Halt(
        id=f"halt_{uuid.uuid4()}",
        reason=_required("reason", reason, limit=REASON),
        added_by=_required("actor", actor, limit=NAME),
        added_at=now,
        **{name: _required(name, glob, limit=GLOB) for name, glob in scope.to_json().items()},
    )
    with durable():
        row.save(force_insert=True)
        act = {"halt": row.id, "reason": row.reason, "scope": scope.to_json()}
        record_act(kind="halt_added", actor=actor, data=act, now=now)
    return halt_record(row), _in_flight(scope)


def _required(field: str, value: str, *, limit: int) -> str:
    text = require_text(field, value, limit=limit)
    if not text.strip():
        raise BadCall(field, "must not be blank")
    return text


def _in_flight(scope: HaltScope) -> int:
    return sum(halts_call(scope, call_fields(run, tool)) for run, tool in list_calls_in_flight())


def lift_halt(*, id: str | None, actor: str, now: datetime) -> int:
    """Lift one halt, or all that stand when `id` is None; returns how many this lifted.

    Raises HaltNotFound for an id that never was; one that was lifted before counts for nothing.
    """
    _required("actor", actor, limit=NAME)
    with durable():
        named = Halt.objects.all() if id is None else Halt.objects.filter(pk=id)
        if id is not None and not named.exists():
            raise HaltNotFound(id)
        standing = named.filter(lifted_at__isnull=True).select_for_update()
        lifted = list(standing.order_by("added_at", "id").values_list("pk", flat=True))
        for halt_id in lifted:
            record_act(kind="halt_lifted", actor=actor, data={"halt": halt_id}, now=now)
        Halt.objects.filter(pk__in=lifted).update(lifted_by=actor, lifted_at=now)
    return len(lifted)
