"""Make steps, manifests and plans as values; every argument is by keyword."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from approvals.core.redaction import redaction_paths
from ledger.core.handles import BeforeRead, Handle, HandleLost
from ledger.core.statuses import ReadBack, SettledBy, StepState
from ledger.core.values import StepRecord
from reversi_sdk.manifests import manifest_from_normal, validate_manifest
from reversi_sdk.model import Manifest
from rollback.core.plan import Plan, build_plan
from rollback.core.report import Refused, Report, build_report
from rollback.core.selection import Selection
from rollback.core.steps import AttemptFact, AttemptOutcome, PlanStep, Role

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
RUN = "run_v"


def digest(data: bytes) -> str:
    """A keyed digest, as a run's."""
    return hmac.new(b"salt", data, hashlib.sha256).hexdigest()


def make_manifest(*, tool: str = "shop.order", **fields: Any) -> Manifest:
    normalized, errors = validate_manifest({"tool": tool, "effect": "idempotent", "permission": "shop:write", **fields})
    assert normalized is not None, errors
    return manifest_from_normal(normalized)


def undoable(*, tool: str = "shop.order", undo: Mapping[str, Any] | None = None, **fields: Any) -> Manifest:
    """A tool undone by `shop.cancel` with what the call returned."""
    compensation = {"tool": "shop.cancel", "argument_map": {"id": "$result.id"}, **(undo or {})}
    return make_manifest(tool=tool, **{"effect": "reversible", "compensation": compensation, **fields})


def writing(*, tool: str = "file.write", **fields: Any) -> Manifest:
    """A tool whose undo puts back what stood at a path, and which says which path that is."""
    compensation = {"tool": "file.restore", "argument_map": {"path": "$args.path"}}
    return make_manifest(
        tool=tool, **{"effect": "reversible", "compensation": compensation, "touches": ["file:{{args.path}}"], **fields}
    )


def make_handle(**fields: Any) -> Handle:
    usual: dict[str, Any] = {"values": {"$result.id": "o1", "$args.path": "a"}, "before": BeforeRead.NOT_MADE}
    return Handle(**{**usual, **fields})


def make_step(
    *,
    number: int = 0,
    manifest: Manifest | None,
    state: StepState = StepState.SUCCEEDED,
    handle: Handle | HandleLost | None = None,
    touches: tuple[str, ...] | None = None,
    follow_ups: Sequence[Manifest] = (),
    attempts: Sequence[AttemptFact] = (),
    **fields: Any,
) -> PlanStep:
    tool = fields.pop("tool", manifest.tool if manifest is not None else "unknown.tool")
    is_open = state in (StepState.INTENDED, StepState.UNCERTAIN)
    usual: dict[str, Any] = {
        "run_id": RUN,
        "number": number,
        "tool": tool,
        "state": state,
        "effect": None if manifest is None else manifest.effect.value,
        "upstream": tool.split(".")[0],
        "manifest_checksum": None if manifest is None else "c" * 64,
        "snapshot": {},
        "args_digest": "d" * 64,
        "summary": "",
        "depends_on": (),
        "requires_steps": (),
        "idempotency_key": None,
        "timeout_ms": 1000,
        "observed_by": "gateway",
        "settled_by": None if is_open else SettledBy.CALLER,
        "error": None,
        "unrecoverable": None,
        "read_back": ReadBack.NOT_DECLARED,
        "is_disputed": False,
        "is_by_hand": False,
        "is_undo_outcome_unknown": False,
        "is_contract_rejected": False,
        "intended_at": NOW,
        "settled_at": None if is_open else NOW,
        "handle": make_handle(touches=touches) if handle is None else handle,
    }
    record = StepRecord(**{**usual, **fields})
    return PlanStep(
        record=record,
        manifest=manifest,
        follow_ups={each.tool: each for each in follow_ups},
        attempts=tuple(attempts),
        redacted=redaction_paths(manifest, ()),
    )


def make_attempt(*, pair: str = "p" * 64, **fields: Any) -> AttemptFact:
    usual: dict[str, Any] = {
        "generation": 0,
        "key": "k" * 64,
        "tool": "shop.cancel",
        "role": Role.PRIMARY,
        "is_keyed": False,
        "outcome": AttemptOutcome.UNKNOWN,
    }
    return AttemptFact(pair=pair, **{**usual, **fields})


def plan_of(*steps: PlanStep, now: datetime = NOW, selection: Selection | None = None, **fields: Any) -> Plan:
    return build_plan(RUN, steps, keyed_digest=digest, now=now, selection=selection, **fields)


def report_of(
    *steps: PlanStep,
    now: datetime = NOW,
    refused: Mapping[int, Refused] | None = None,
    selection: Selection | None = None,
) -> Report:
    return build_report(RUN, steps, keyed_digest=digest, now=now, refused=refused or {}, selection=selection)


def kinds(plan: Plan) -> dict[int, str]:
    return {action.step: action.kind.value for action in plan.actions}


def reasons(plan: Plan) -> dict[int, str | None]:
    return {action.step: action.reason for action in plan.actions}


def blocked(plan: Plan) -> dict[int, tuple[int, ...]]:
    return {action.step: action.blocked_by for action in plan.actions if action.blocked_by}
