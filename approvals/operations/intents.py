"""Put together what is committed about a call before it is made."""

from __future__ import annotations

from django.conf import settings

from approvals.core.before import Captured
from approvals.core.gate import Admission
from approvals.core.keys import forward_key
from approvals.core.summary import summarise
from approvals.core.undo_handles import handle_at_intent, missing_at_intent
from approvals.core.violations import Code
from approvals.operations.admission import Candidate
from ledger.core.values import Intent, RunRecord
from reversi_sdk.model import Manifest

OBSERVED_BY_GATEWAY = "gateway"
OBSERVED_BY_CALLER = "caller"


def build_intent(candidate: Candidate, run: RunRecord, admission: Admission, captured: Captured) -> Intent:
    """Return the intent of an admitted call."""
    request, manifest, entry = candidate.request, candidate.manifest, candidate.entry
    described = None if entry is None else entry.manifest
    handle = handle_at_intent(manifest, request.args, captured)
    return Intent(
        tool=request.tool,
        args=request.body,
        effect=None if described is None else described.effect.value,
        upstream=candidate.upstream,
        manifest_checksum=None if entry is None else entry.checksum,
        snapshot={each.manifest.tool: each.checksum for each in candidate.involved},
        summary=summarise(request.tool, described, request.args, candidate.redacted),
        depends_on=request.depends_on,
        requires_steps=admission.requires_steps,
        # The step that holds the key stands already: this one, only observed, is written beside it without.
        call_key=None if admission.has(Code.DUPLICATE) else candidate.key_in(run),
        idempotency_key=forward_key(manifest, request.key, run_id=run.id, number=run.next_step, tool=request.tool),
        ledger_id=request.key,
        timeout_ms=_timeout_ms(manifest, candidate.observed_by),
        observed_by=candidate.observed_by,
        handle=handle,
        unrecoverable=captured.failure or missing_at_intent(manifest, handle),
        is_contract_rejected=described is not None and manifest is None,
        reason=request.reason,
        violations=tuple(violation.to_json() for violation in admission.violations),
        notes=admission.notes,
    )


def _timeout_ms(manifest: Manifest | None, observed_by: str) -> int:
    if manifest is not None and manifest.timeout_ms is not None:
        return manifest.timeout_ms
    usual = settings.GATEWAY_TIMEOUT_MS if observed_by == OBSERVED_BY_GATEWAY else settings.CALLER_TIMEOUT_MS
    return int(usual)
