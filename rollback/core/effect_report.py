"""The report about one call's effect that its caller gets with the outcome: what would undo it, and until when.

The shape is that of the effect contract: a failed or uncertain call has its class, key and look-up, and no undo.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ledger.core.handles import Handle
from ledger.core.statuses import StepState
from reversi_sdk.model import Effect, Lookup
from reversi_sdk.references import MISSING, Arguments, Found, Missing, Reference, Root, resolve
from rollback.core.keys import KeyedDigest
from rollback.core.redaction import redacting
from rollback.core.steps import PlanStep, Role
from rollback.core.undo import Chosen, Withheld, build_undos

READ = "read"
IDEMPOTENT = "declared idempotent, no undo"
IRREVERSIBLE = "declared irreversible, no undo"

_KINDS: Mapping[Effect, str] = {Effect.REVERSIBLE: "inverse", Effect.COMPENSABLE: "compensate"}


def effect_report(step: PlanStep, *, keyed_digest: KeyedDigest) -> dict[str, Any]:
    """Return the report; values that are never shown stand as `[redacted]`."""
    effect = None if step.distrust is not None or step.manifest is None else step.manifest.effect
    report = {
        "class": _class(effect),
        "operation": step.record.tool,
        "idempotency_key": step.record.idempotency_key,
        "undo": None,
        "deadline_ms": None,
        "lookup": _lookup(step, effect),
    }
    if step.record.state is not StepState.SUCCEEDED or effect is Effect.READ_ONLY:
        return report
    return {**report, **_undo(step, effect, keyed_digest)}


def _class(effect: Effect | None) -> str:
    match effect:
        case Effect.READ_ONLY:
            return READ
        case Effect.REVERSIBLE | Effect.COMPENSABLE:
            return effect.value
        case Effect.IDEMPOTENT | Effect.IRREVERSIBLE | None:
            return Effect.IRREVERSIBLE.value


def _undo(step: PlanStep, effect: Effect | None, keyed_digest: KeyedDigest) -> dict[str, Any]:
    if effect is None:
        return {"undo_unavailable": step.distrust}
    kind = _KINDS.get(effect)
    if kind is None:
        return {"undo_unavailable": IDEMPOTENT if effect is Effect.IDEMPOTENT else IRREVERSIBLE}
    if step.record.unrecoverable is not None:
        return {"undo_unavailable": step.record.unrecoverable}
    return _built(build_undos(step, keyed_digest=keyed_digest), kind)


def _built(undos: Mapping[Role, Chosen | Withheld], kind: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    first = next((undo for role, undo in undos.items() if role is not Role.FALLBACK), None)
    match first:
        case Chosen():
            found |= {"undo": _call(first, kind), "deadline_ms": _epoch_ms(first.deadline)}
        case Withheld():
            found["undo_unavailable"] = first.reason
        case None:
            found["undo_unavailable"] = "the undo handle is gone"
    fallback = undos.get(Role.FALLBACK)
    if isinstance(fallback, Chosen):
        found["compensate"] = {**_call(fallback, "compensate"), "deadline_ms": _epoch_ms(fallback.deadline)}
    return found


def _call(chosen: Chosen, kind: str) -> dict[str, Any]:
    tool = chosen.undo.tool
    return {"kind": kind, "operation": tool, "tool": tool, "arguments": dict(chosen.shown)}


def _epoch_ms(at: datetime | None) -> int | None:
    return None if at is None else int(at.timestamp() * 1000)


def _lookup(step: PlanStep, effect: Effect | None) -> dict[str, Any] | None:
    lookup = step.manifest.lookup if step.manifest is not None and effect is not None else None
    arguments = None if lookup is None else _lookup_arguments(step, lookup)
    if lookup is None or arguments is None:
        return None
    return {"operation": lookup.tool, "tool": lookup.tool, "by": lookup.by, "arguments": arguments}


def _lookup_arguments(step: PlanStep, lookup: Lookup) -> dict[str, Any] | None:
    handle, key = step.record.handle, step.record.idempotency_key

    def find(reference: Reference) -> Found | Missing:
        if reference.root is Root.IDEMPOTENCY_KEY and key is not None:
            return Found(key)
        return handle.find(reference) if isinstance(handle, Handle) else MISSING

    found = resolve(lookup.arguments, redacting(find, step.redacted))
    return dict(found.values) if isinstance(found, Arguments) else None
