"""Gather what the gate looks at, from the journal and the halts as they are now, and ask it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.conf import settings

from approvals.core.doors import Request
from approvals.core.duplicates import call_key, render_key
from approvals.core.gate import Admission, Situation, admit
from approvals.core.redaction import redaction_paths
from approvals.queries import list_halt_reasons
from ledger.core.values import RunRecord
from ledger.queries import find_standing_call, list_standing_successes
from manifests_registry.core.snapshot import Entry
from reversi_sdk.model import Manifest
from reversi_sdk.references import Reference


@dataclass(frozen=True, slots=True)
class Candidate:
    """A call on its way through the gate: as asked for, its registry entry, and its manifest unless that is a draft.

    `involved` are the entries whose documents the step will point to.
    """

    request: Request
    entry: Entry | None
    manifest: Manifest | None
    involved: Sequence[Entry]
    observed_by: str
    upstream: str

    @property
    def redacted(self) -> tuple[Reference, ...]:
        """Return the paths of the call that are never shown, a draft's too."""
        described = None if self.entry is None else self.entry.manifest
        return redaction_paths(described, settings.CONFIGURATION.redaction)

    def key_in(self, run: RunRecord) -> str | None:
        """Return the call key, or None when the tool declares none or it cannot be built."""
        rendered = render_key(self.manifest, self.request.args)
        return call_key(self.manifest, rendered, run, settings.REVERSI_CALL_KEY_SECRET)


def judge(candidate: Candidate, run: RunRecord) -> Admission:
    """Ask the gate about a call; a key or a requirement that is not declared costs no query."""
    tool, manifest = candidate.request.tool, candidate.manifest
    situation = Situation(
        run=run,
        tool=tool,
        manifest=None if candidate.entry is None else candidate.entry.manifest,
        halts=list_halt_reasons(run=run, tool=tool),
    )
    if manifest is not None and manifest.requires:
        situation = replace(situation, successes=list_standing_successes(run.id, manifest.requires))
    if manifest is not None and manifest.idempotency is not None:
        problem = render_key(manifest, candidate.request.args).problem
        key = candidate.key_in(run)
        situation = replace(situation, key_problem=problem, holder=find_standing_call(key) if key else None)
    return admit(situation)
