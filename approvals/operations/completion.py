"""Complete a call: the second commit of a step, with what the undo needs of the result (D13, D14)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from approvals.core.before import BeforeAnswer, after_digest
from approvals.core.errors import BadCall
from approvals.core.undo_handles import handle_with_result, missing_after
from ledger.core.handles import Handle
from ledger.core.statuses import SettledBy, StepState
from ledger.core.values import Outcome, StepRecord
from ledger.operations.steps import record_outcome
from ledger.queries import get_keyed_digest, get_step
from manifests_registry.core.errors import DocumentAltered, DocumentNotFound
from manifests_registry.queries import get_document
from reversi_sdk.model import Manifest

OUTCOMES = frozenset({StepState.SUCCEEDED, StepState.FAILED, StepState.UNCERTAIN})


def complete_call(
    *,
    run_id: str,
    number: int,
    status: str,
    actor: str,
    now: datetime,
    result: Any = None,
    error: str | None = None,
    after: BeforeAnswer | None = None,
) -> StepRecord:
    """Record how a call ended; the result is never refused, whatever it holds.

    `after` is the answer of the `before` read made again after a success. The same outcome again is accepted
    unchanged; raises OutcomeConflict for another one.
    """
    if status not in OUTCOMES:
        raise BadCall("status", f"must be succeeded, failed or uncertain, not {status!r}")
    state = StepState(status)
    step = get_step(run_id, number)
    outcome = _success(step, result, after) if state is StepState.SUCCEEDED else Outcome(state, error=error)
    return record_outcome(run_id=run_id, number=number, outcome=outcome, by=SettledBy.CALLER, actor=actor, now=now)


def _success(step: StepRecord, result: Any, after: BeforeAnswer | None) -> Outcome:
    manifest = trusted_manifest(step)
    if isinstance(manifest, str):
        return Outcome(StepState.SUCCEEDED, unrecoverable=manifest)
    # A lost handle says so itself wherever it is opened, and nothing may be built on it.
    if manifest is None or not isinstance(step.handle, Handle):
        return Outcome(StepState.SUCCEEDED)
    handle = handle_with_result(manifest, step.handle, result)
    if after is not None:
        handle = replace(handle, after=after_digest(get_keyed_digest(step.run_id), manifest, after, handle.find))
    unrecoverable = step.unrecoverable or missing_after(manifest, handle)
    return Outcome(StepState.SUCCEEDED, handle=handle, unrecoverable=unrecoverable)


def trusted_manifest(step: StepRecord) -> Manifest | str | None:
    """Return the manifest a step ran under; None where none was approved, a reason where its document is lost."""
    if step.manifest_checksum is None or step.is_contract_rejected:
        return None
    try:
        return get_document(step.manifest_checksum)
    except (DocumentAltered, DocumentNotFound) as error:
        return str(error)
