"""From the normal form to the one internal model that both effect forms share (D2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reversi_sdk.manifests.places import is_contract
from reversi_sdk.manifests.rules import effect_word
from reversi_sdk.model import (
    AbsentWhen,
    Approval,
    Before,
    CompensationKind,
    Deadline,
    Draft,
    DraftCall,
    Effect,
    Idempotency,
    KeyCarrier,
    Lookup,
    Manifest,
    ManifestStatus,
    Retry,
    Undo,
    UnusableWhen,
    Verification,
)
from reversi_sdk.references import (
    MapValue,
    Reference,
    Spelling,
    parse_expected_value,
    parse_map_value,
    parse_path,
    parse_reference,
    spelling_of,
)

Data = Mapping[str, Any]


def manifest_from_normal(normalized: Data) -> Manifest:
    """Build the model from a normal form that `validate_manifest` returned."""
    risk, audit = normalized.get("risk", {}), normalized.get("audit", {})
    return Manifest(
        tool=normalized["tool"],
        effect=Effect(effect_word(normalized) or Effect.IRREVERSIBLE),
        permission=normalized["permission"],
        description=normalized.get("description"),
        version=normalized["version"],
        status=ManifestStatus(normalized["status"]),
        replaced_by=normalized.get("replaced_by"),
        owner=normalized.get("owner"),
        oncall=normalized.get("oncall"),
        data_class=risk.get("data_class"),
        blast_radius=risk.get("blast_radius"),
        environment=risk.get("environment"),
        approval=_approval(normalized["approval"]),
        requires=tuple(entry["tool"] for entry in normalized.get("requires", ())),
        timeout_ms=normalized.get("timeout_ms"),
        retry=_retry(normalized.get("retry")),
        idempotency=_idempotency(normalized.get("idempotency")),
        key_carrier=_key_carrier(normalized.get("key_carrier")),
        undo=_undo_of(normalized),
        before=_before(normalized),
        lookup=_lookup(_effect_part(normalized, "lookup"), _spelling(normalized)),
        draft=_draft(_effect_part(normalized, "draft"), _spelling(normalized)),
        touches=tuple(normalized["touches"]) if "touches" in normalized else None,
        summary=normalized.get("summary"),
        observed_by_gateway=normalized.get("observed_by") == "gateway",
        is_compensation_only=normalized.get("compensation_only", False),
        redaction=tuple(_outside_reference(text, normalized) for text in audit.get("redaction", ())),
        retention_days=audit.get("retention_days"),
        evidence_export=audit.get("evidence_export"),
        schema_hash=normalized.get("schema_hash"),
    )


def _spelling(normalized: Data) -> Spelling:
    return Spelling.CONTRACT if is_contract(normalized) else Spelling.FLAT


def _effect_part(normalized: Data, name: str) -> Data | None:
    block = normalized["effect"] if is_contract(normalized) else normalized
    part: Data | None = block.get(name)
    return part


def _outside_reference(text: str, normalized: Data) -> Reference:
    return parse_reference(text, spelling=spelling_of(text, default=_spelling(normalized)))


def _arguments(data: Data, spelling: Spelling) -> dict[str, MapValue]:
    source = data["argument_map"] if "argument_map" in data else data["arguments"]
    return {name: parse_map_value(value, spelling=spelling) for name, value in source.items()}


def _tool(data: Data) -> str:
    tool: str = data["tool"] if "tool" in data else data["operation"]
    return tool


def _approval(data: str | Data) -> Approval:
    rules: Data = {"required": data == "always"} if isinstance(data, str) else data
    return Approval(
        is_required=rules.get("required", True),
        roles=tuple(rules.get("roles", ())),
        quorum=rules.get("quorum", 1),
        timeout_ms=rules.get("timeout"),
        on_timeout=rules.get("on_timeout", "deny"),
        escalate_to=tuple(rules.get("escalate_to", ())),
    )


def _retry(data: Data | None) -> Retry | None:
    return None if data is None else Retry(data["attempts"], data["base_ms"], data["max_ms"])


def _idempotency(data: Data | None) -> Idempotency | None:
    return None if data is None else Idempotency(data["key"], data["scope"])


def _key_carrier(data: Data | None) -> KeyCarrier | None:
    return None if data is None else KeyCarrier(data.get("argument"), data.get("meta", False))


def _undo_of(normalized: Data) -> Undo | None:
    if not is_contract(normalized):
        flat: Data | None = normalized.get("compensation")
        return None if flat is None else _undo(flat, Spelling.FLAT, CompensationKind(flat["kind"]))
    block = normalized["effect"]
    inverse, compensate = block.get("inverse"), block.get("compensate")
    amends = None if compensate is None else _undo(compensate, Spelling.CONTRACT, CompensationKind.COMPENSATION)
    if inverse is None:
        return amends
    return _undo(inverse, Spelling.CONTRACT, CompensationKind.INVERSE, fallback=amends)


def _undo(data: Data, spelling: Spelling, kind: CompensationKind, fallback: Undo | None = None) -> Undo:
    absent, later = data.get("when_absent"), data.get("fallback")
    if later is not None:
        fallback = _undo(later, spelling, CompensationKind(later["kind"]))
    return Undo(
        tool=_tool(data),
        arguments=_arguments(data, spelling),
        kind=kind,
        residue=tuple(data.get("residue", ())),
        requires_approval=data["requires_approval"],
        timeout_ms=data.get("timeout_ms"),
        verification=_verification(data.get("verification"), spelling),
        deadline=_deadline(data.get("deadline"), spelling),
        self_inverse=data.get("self_inverse", False),
        repeatable=data.get("repeatable", False),
        when_absent=None if absent is None else _undo(absent, spelling, kind),
        fallback=fallback,
    )


def _verification(data: Data | None, spelling: Spelling) -> Verification | None:
    if data is None:
        return None
    return Verification(
        tool=_tool(data),
        arguments=_arguments(data, spelling),
        expect={path: parse_expected_value(value, spelling=spelling) for path, value in data["expect"].items()},
        retries=data["retries"],
        backoff_ms=data["backoff_ms"],
        among={path: parse_reference(text, spelling=spelling) for path, text in data.get("among", {}).items()},
        is_unordered=data.get("unordered", False),
    )


def _deadline(data: Data | None, spelling: Spelling) -> Deadline | None:
    if data is None:
        return None
    at = parse_reference(data["at"], spelling=spelling) if "at" in data else None
    return Deadline(within_ms=data.get("within_ms"), at=at)


def _before(normalized: Data) -> Before | None:
    data = normalized.get("before")
    if data is None:
        return None
    absent, unusable, default = data.get("absent_when"), data.get("unusable_when"), _spelling(normalized)
    return Before(
        tool=data["tool"],
        arguments={
            name: parse_map_value(value, spelling=spelling_of(value, default=default))
            for name, value in data["arguments"].items()
        },
        proceeds_on_missing=data.get("on_missing") == "proceed",
        absent_when=None if absent is None else _absent_when(absent),
        unusable_when=None if unusable is None else UnusableWhen(parse_path(unusable["path"]), unusable["glob"]),
        among={path: _outside_reference(text, normalized) for path, text in data.get("among", {}).items()},
        is_unordered=data.get("unordered", False),
    )


def _absent_when(data: Data) -> AbsentWhen:
    path = parse_path(data["path"]) if "path" in data else None
    return AbsentWhen(path=path, equals=data.get("equals"), error=data.get("error"))


def _lookup(data: Data | None, spelling: Spelling) -> Lookup | None:
    if data is None:
        return None
    mapped = data.get("result_map")
    return Lookup(
        tool=_tool(data),
        by=data["by"],
        arguments=_arguments(data, spelling),
        result_map=None if mapped is None else _arguments({"arguments": mapped}, spelling),
        settle_after_ms=data.get("settle_after"),
        valid_for_ms=data.get("valid_for"),
    )


def _draft(data: Data | None, spelling: Spelling) -> Draft | None:
    if data is None:
        return None
    discard = data.get("discard")
    return Draft(
        tool=_tool(data),
        arguments=_arguments(data, spelling),
        handle=parse_reference(data["handle"], spelling=spelling),
        promote=_draft_call(data["promote"], spelling),
        discard=None if discard is None else _draft_call(discard, spelling),
    )


def _draft_call(data: Data, spelling: Spelling) -> DraftCall:
    return DraftCall(tool=_tool(data), arguments=_arguments(data, spelling))
