"""The journal's values as JSON documents: the same over HTTP and on the command line."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ledger.core.values import EventRecord, RunRecord, StepRecord


def shown_time(at: datetime | None) -> str | None:
    """Return a time as documents and people read it: UTC, to the second."""
    return None if at is None else at.strftime("%Y-%m-%dT%H:%M:%SZ")


def run_document(run: RunRecord) -> dict[str, Any]:
    """Return a run without its steps."""
    return {
        "id": run.id,
        "principal": run.principal,
        "actor": run.actor,
        "tenant": run.tenant,
        "environment": run.environment,
        "mode": run.mode.value,
        "scope": list(run.scope),
        "reason": run.reason,
        "labels": dict(run.labels),
        "state": run.state.value,
        "rolling_back": run.is_rolling_back,
        "steps": run.next_step,
        "opened_at": shown_time(run.opened_at),
        "closed_at": shown_time(run.closed_at),
        "active_at": shown_time(run.active_at),
    }


def step_document(step: StepRecord) -> dict[str, Any]:
    """Return a step; the undo handle stays where it is."""
    return {
        "step": step.number,
        "tool": step.tool,
        "state": step.state.value,
        "effect": step.effect,
        "summary": step.summary,
        "depends_on": list(step.depends_on),
        "manifest": step.manifest_checksum,
        "idempotency_key": step.idempotency_key,
        "observed_by": step.observed_by,
        "settled_by": step.settled_by.value if step.settled_by else None,
        "error": step.error,
        "unrecoverable": step.unrecoverable,
        "read_back": step.read_back.value if step.state.value == "compensated" else None,
        "disputed": step.is_disputed,
        "by_hand": step.is_by_hand,
        "undo_outcome_unknown": step.is_undo_outcome_unknown,
        "intended_at": shown_time(step.intended_at),
        "settled_at": shown_time(step.settled_at),
    }


def event_document(event: EventRecord) -> dict[str, Any]:
    """Return an event with its place in the chain, and its data while that is kept."""
    return {
        "seq": event.seq,
        "kind": event.kind,
        "at": event.at,
        "actor": event.actor,
        "step": event.step,
        "data": None if event.data is None else dict(event.data),
        "data_hash": event.data_hash,
        "prev": event.prev,
        "hash": event.hash,
    }
