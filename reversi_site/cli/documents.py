"""The journal's values as JSON documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reversi_site.cli.output import shown_time

if TYPE_CHECKING:
    from ledger.core.values import RunRecord, StepRecord


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
        # Of a step that nobody undid there is nothing to read back yet, whatever its manifest declares.
        "read_back": step.read_back.value if step.state.value == "compensated" else None,
        "disputed": step.is_disputed,
        "by_hand": step.is_by_hand,
        "undo_outcome_unknown": step.is_undo_outcome_unknown,
        "intended_at": shown_time(step.intended_at),
        "settled_at": shown_time(step.settled_at),
    }
