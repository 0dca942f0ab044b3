"""A case per rule: what breaks it, where that is said, and with which code."""

from __future__ import annotations

from typing import Any

import pytest

from reversi_sdk import validate_manifest
from tests.reversi_sdk.sdk_factories import (
    AMENDS,
    BEFORE,
    CONTRACT_DRAFT,
    CONTRACT_LOOKUP,
    DRAFT,
    LOOKUP,
    SAMPLES,
    VERIFICATION,
    compensating,
    contract,
    flat,
    reading,
)

INVERSE = {"operation": "shop.cancel", "arguments": {"id": "response.id"}}
ABSENT = {"tool": "shop.drop", "argument_map": {"id": "$args.id"}}

# Each: the manifest, the place, a part of the message.
FIELD_CASES: dict[str, tuple[Any, str, str]] = {
    "no tool": (reading(tool=None), "tool", "is required"),
    "tool no text": (reading(tool=5), "tool", "must be a text, not a number"),
    "tool with space": (reading(tool="a b"), "tool", "letters, digits"),
    "tool with line end": (reading(tool="a\n"), "tool", "letters, digits"),
    "tool with empty part": (reading(tool="a//b"), "tool", "empty"),
    "tool with dots part": (reading(tool="a/../b"), "tool", "empty"),
    "tool only a dot": (reading(tool="."), "tool", "empty"),
    "tool ends in slash": (reading(tool="a/"), "tool", "empty"),
    "tool too long": (reading(tool="a" * 129), "tool", "128"),
    "no effect": (reading(effect=None), "effect", "is required"),
    "unknown effect": (reading(effect="read-only"), "effect", "did you mean read_only?"),
    "effect no word": (reading(effect=["read_only"]), "effect", "must be read_only"),
    "no permission": (reading(permission=None), "permission", "is required"),
    "permission with space": (reading(permission="a b"), "permission", "without whitespace"),
    "permission empty": (reading(permission=""), "permission", "without whitespace"),
    "unknown field": (reading(ownr="x"), "ownr", "did you mean owner?"),
    "unknown field, nothing near": (reading(zzzzzz="x"), "zzzzzz", "unknown field"),
    "unknown field inside": (compensating(argumentmap={}), "compensation.argumentmap", "did you mean argument_map?"),
    "description no text": (reading(description=True), "description", "not a boolean"),
    "owner null in list": (reading(owner=[None]), "owner", "not a list"),
    "version zero": (reading(version=0), "version", "from 1"),
    "version boolean": (reading(version=True), "version", "not a boolean"),
    "version fraction": (reading(version=1.5), "version", "whole number"),
    "version text": (reading(version="1"), "version", "not a text"),
    "unknown status": (reading(status="live"), "status", "must be draft, approved or deprecated"),
    "replaced by itself": (reading(replaced_by="shop.get"), "replaced_by", "cannot replace itself"),
    "risk radius": (reading(risk={"blast_radius": "huge"}), "risk.blast_radius", "critical"),
    "risk no object": (reading(risk="high"), "risk", "must be an object, not a text"),
    "timeout negative": (reading(timeout_ms=-1), "timeout_ms", "negative"),
    "timeout zero": (reading(timeout_ms="0s"), "timeout_ms", "at least 1ms"),
    "timeout no unit": (reading(timeout_ms="30"), "timeout_ms", "not a duration"),
    "retry attempts": (reading(retry={"attempts": 11}), "retry.attempts", "from 1 to 10"),
    "retry of a change": (flat(retry={}), "retry", "only for read_only and idempotent"),
    "key without field": (reading(idempotency={"key": "fixed"}), "idempotency.key", "at least one"),
    "key reads result": (reading(idempotency={"key": "{{result.id}}"}), "idempotency.key", "is no field"),
    "key unbalanced": (reading(idempotency={"key": "a{{args.id"}), "idempotency.key", "pairs"),
    "key no text": (reading(idempotency={"key": 1}), "idempotency.key", "must be a text"),
    "key missing": (reading(idempotency={}), "idempotency.key", "is required"),
    "scope": (reading(idempotency={"key": "{{args.a}}", "scope": "all"}), "idempotency.scope", "run, actor or global"),
    "key carrier both": (reading(key_carrier={"argument": "k", "meta": True}), "key_carrier", "both are given"),
    "key carrier neither": (reading(key_carrier={}), "key_carrier", "neither is given"),
    "key carrier false": (reading(key_carrier={"meta": False}), "key_carrier.meta", "must be true"),
    "retention": (reading(audit={"retention_days": 0}), "audit.retention_days", "from 1"),
    "redaction bare": (reading(audit={"redaction": ["$args"]}), "audit.redaction[0]", "names no value"),
    "redaction optional": (reading(audit={"redaction": ["$args.a?"]}), "audit.redaction[0]", "cannot be optional"),
    "redaction no text": (reading(audit={"redaction": [1]}), "audit.redaction[0]", "must be a reference"),
    "redaction other spelling": (reading(audit={"redaction": ["request.a"]}), "audit.redaction[0]", "is no reference"),
    "schema hash blank": (reading(schema_hash=" "), "schema_hash", "without whitespace"),
    "touches empty": (flat(touches=[]), "touches", "at least 1"),
    "touches no list": (flat(touches="a"), "touches", "must be a list"),
    "touches empty text": (flat(touches=[""]), "touches[0]", "cannot be empty"),
    "touches twice": (flat(touches=["a", "a"]), "touches[1]", "listed twice"),
    "touches before": (flat(touches=["{{before.a}}"]), "touches[0]", "is no field"),
    "too many entries": (flat(touches=["a"] * 1001), "touches", "at most 1000"),
    "summary reads result": (flat(summary="{{result.id}}"), "summary", "is no field"),
    "observed by caller": (flat(observed_by="caller"), "observed_by", "must be gateway"),
    "compensation only word": (flat(compensation_only="yes"), "compensation_only", "must be true or false"),
}
FLAT_CASES: dict[str, tuple[Any, str, str]] = {
    "compensable without": (flat(compensation=None), "compensation", "is required"),
    "reversible without": (flat(compensation=None, effect="reversible"), "compensation", "is required"),
    "read with": (flat(effect="read_only"), "compensation", "does not belong"),
    "idempotent with": (flat(effect="idempotent"), "compensation", "does not belong"),
    "irreversible with": (flat(effect="irreversible"), "compensation", "does not belong"),
    "compensation no object": (flat(compensation="x"), "compensation", "must be an object"),
    "inverse no object": (contract(inverse="x"), "effect.inverse", "must be an object"),
    "no tool": (compensating(tool=None), "compensation.tool", "is required"),
    "kind": (compensating(kind="undo"), "compensation.kind", "compensation or inverse"),
    "inverse with residue": (
        compensating(kind="inverse", residue=["x"]),
        "compensation.residue",
        "cannot list residue",
    ),
    "residue blank": (compensating(residue=[" "]), "compensation.residue[0]", "blank"),
    "argument map no object": (compensating(argument_map=[]), "compensation.argument_map", "object of arguments"),
    "argument without name": (
        compensating(argument_map={"": "$args.a"}),
        'compensation.argument_map[""]',
        "needs a name",
    ),
    "expect empty": (
        compensating(verification=VERIFICATION | {"expect": {}}),
        "compensation.verification.expect",
        "at least one",
    ),
    "expect no object": (
        compensating(verification=VERIFICATION | {"expect": []}),
        "compensation.verification.expect",
        "object of paths",
    ),
    "expect missing": (
        compensating(verification={"tool": "shop.get"}),
        "compensation.verification.expect",
        "is required",
    ),
    "expect path": (
        compensating(verification=VERIFICATION | {"expect": {"a..b": 1}}),
        "compensation.verification.expect.a..b",
        "is no path",
    ),
    "retries": (
        compensating(verification=VERIFICATION | {"retries": 0}),
        "compensation.verification.retries",
        "from 1 to 10",
    ),
    "self inverse of another": (compensating(self_inverse=True), "compensation.self_inverse", "by the tool itself"),
    "repeatable alone": (compensating(repeatable=True), "compensation.repeatable", "self_inverse"),
    "fallback in fallback": (
        compensating(fallback={"tool": "a", "fallback": {"tool": "b"}}),
        "compensation.fallback.fallback",
        "unknown field",
    ),
    "absent without before": (compensating(when_absent=ABSENT), "compensation.when_absent", "needs before.absent_when"),
    "absent without absent_when": (
        compensating(when_absent=ABSENT) | {"before": {"tool": "shop.get"}},
        "compensation.when_absent",
        "needs before.absent_when",
    ),
    "before itself": (flat(before={"tool": "shop.order"}), "before.tool", "its own read"),
    "before neither": (flat(before=BEFORE | {"absent_when": {}}), "before.absent_when", "neither"),
    "before no equals": (
        flat(before=BEFORE | {"absent_when": {"path": "a"}}),
        "before.absent_when.equals",
        "required beside path",
    ),
    "before equals alone": (
        flat(before=BEFORE | {"absent_when": {"error": "x", "equals": 1}}),
        "before.absent_when.equals",
        "only beside path",
    ),
    "before path": (
        flat(before=BEFORE | {"absent_when": {"path": "", "equals": 1}}),
        "before.absent_when.path",
        "is no path",
    ),
    "before path no text": (
        flat(before=BEFORE | {"absent_when": {"path": 1, "equals": 1}}),
        "before.absent_when.path",
        "must be a text",
    ),
    "unusable without glob": (
        flat(before=BEFORE | {"unusable_when": {"path": "a"}}),
        "before.unusable_when.glob",
        "is required",
    ),
    "unordered no flag": (flat(before=BEFORE | {"unordered": "yes"}), "before.unordered", "true or false"),
    "among empty": (flat(before=BEFORE | {"among": {}}), "before.among", "at least one"),
    "among no object": (flat(before=BEFORE | {"among": ["a"]}), "before.among", "must be an object of paths"),
    "among no path": (flat(before=BEFORE | {"among": {"a b": "$args.a"}}), "before.among.a b", "is no path"),
    "among optional": (
        compensating(verification=VERIFICATION | {"among": {"a": "$result.a?"}}),
        "compensation.verification.among.a",
        "cannot be optional",
    ),
    "on_missing": (flat(before=BEFORE | {"on_missing": "skip"}), "before.on_missing", "refuse or proceed"),
    "by": (flat(lookup=LOOKUP | {"by": "name"}), "lookup.by", "idempotency_key or id"),
    "promote missing": (flat(draft=DRAFT | {"promote": None}), "draft.promote", "must be an object, not null"),
    "requires itself": (flat(requires=["shop.order"]), "requires[0]", "cannot require itself"),
    "requires twice": (flat(requires=["a", {"tool": "a"}]), "requires[1]", "listed twice"),
    "requires status": (flat(requires=[{"tool": "a", "status": "failed"}]), "requires[0].status", "must be succeeded"),
    "requires numbers": (flat(requires=[1]), "requires[0]", "must be a text"),
    "never for irreversible": (
        {"tool": "m", "effect": "irreversible", "permission": "p", "approval": "never"},
        "approval",
        "always needs approval",
    ),
    "not required for irreversible": (
        {"tool": "m", "effect": "irreversible", "permission": "p", "approval": {"required": False}},
        "approval.required",
        "always needs approval",
    ),
    "never for a block without class": (
        {"tool": "m", "effect": {}, "permission": "p", "approval": "never"},
        "approval",
        "always needs approval",
    ),
    "approval word": (flat(approval="sometimes"), "approval", "never or always"),
    "quorum": (flat(approval={"roles": ["a"], "quorum": 11}), "approval.quorum", "from 1 to 10"),
    "quorum without roles": (flat(approval={"quorum": 2}), "approval.quorum", "needs roles"),
    "escalate to nobody": (flat(approval={"on_timeout": "escalate"}), "approval.on_timeout", "needs escalate_to"),
    "on_timeout": (flat(approval={"on_timeout": "allow"}), "approval.on_timeout", "deny or escalate"),
    "roles twice": (flat(approval={"roles": ["a", "a"]}), "approval.roles[1]", "listed twice"),
}

# Each: the manifest, the place, the code.
CODE_CASES: dict[str, tuple[Any, str, str]] = {
    "class and reversible": (contract(reversible=False), "effect.reversible", "class_conflicts_reversible"),
    "no class but reversible": (
        {"tool": "m", "permission": "p", "effect": {"reversible": True}},
        "effect.reversible",
        "class_conflicts_reversible",
    ),
    "no inverse": (contract(inverse=None), "effect.inverse", "reversible_without_inverse"),
    "no compensate": (
        contract(inverse=None, **{"class": "compensable"}),
        "effect.compensate",
        "compensable_without_compensate",
    ),
    "inverse of compensable": (
        contract(compensate=AMENDS, **{"class": "compensable"}),
        "effect.inverse",
        "inverse_on_non_reversible",
    ),
    "inverse without class": (contract(**{"class": None}), "effect.inverse", "inverse_on_non_reversible"),
    "compensate of read": (
        contract(inverse=None, compensate=AMENDS, **{"class": "read"}),
        "effect.compensate",
        "compensate_on_class",
    ),
    "lookup of read": (
        contract(inverse=None, lookup=CONTRACT_LOOKUP, **{"class": "read"}),
        "effect.lookup",
        "lookup_on_read",
    ),
    "draft of read": (
        contract(inverse=None, draft=CONTRACT_DRAFT, **{"class": "read"}),
        "effect.draft",
        "draft_on_read",
    ),
    "operation missing": (contract(inverse={"arguments": {}}), "effect.inverse.operation", "operation_missing"),
    "several operations": (
        contract(inverse=INVERSE | {"operation": ["a", "b"]}),
        "effect.inverse.operation",
        "operation_missing",
    ),
    "operation and tool": (
        contract(inverse=INVERSE | {"verification": {"operation": "a", "tool": "b", "expect": {"a": 1}}}),
        "effect.inverse.verification.tool",
        "operation_missing",
    ),
    "operation blank": (contract(inverse=INVERSE | {"operation": ""}), "effect.inverse.operation", "operation_missing"),
    "inverse itself": (
        contract(inverse=INVERSE | {"operation": "shop.order"}),
        "effect.inverse.operation",
        "operation_self",
    ),
    "compensation itself": (compensating(tool="shop.order"), "compensation.tool", "operation_self"),
    "lookup itself": (flat(lookup=LOOKUP | {"tool": "shop.order"}), "lookup.tool", "operation_self"),
    "read-back itself": (
        compensating(verification=VERIFICATION | {"tool": "shop.order"}),
        "compensation.verification.tool",
        "operation_self",
    ),
    "promote itself": (
        flat(draft=DRAFT | {"promote": {"tool": "shop.order"}}),
        "draft.promote.tool",
        "operation_self",
    ),
    "absent itself": (
        compensating(when_absent=ABSENT | {"tool": "shop.order"}) | {"before": BEFORE},
        "compensation.when_absent.tool",
        "operation_self",
    ),
    "path": (
        contract(inverse=INVERSE | {"arguments": {"id": "response.*"}}),
        "effect.inverse.arguments.id",
        "path_invalid",
    ),
    "path with line end": (
        contract(inverse=INVERSE | {"arguments": {"id": "response.id\n"}}),
        "effect.inverse.arguments.id",
        "path_invalid",
    ),
    "flat path": (compensating(argument_map={"a": "id"}), "compensation.argument_map.a", "path_invalid"),
    "literal": (compensating(argument_map={"a": 5}), "compensation.argument_map.a", "path_invalid"),
    "bare args": (compensating(argument_map={"a": "$args"}), "compensation.argument_map.a", "path_invalid"),
    "bare result": (compensating(argument_map={"a": "$result?"}), "compensation.argument_map.a", "path_invalid"),
    "bare before": (compensating(argument_map={"a": "$before"}), "compensation.argument_map.a", "path_invalid"),
    "nested": (
        compensating(argument_map={"a": ["$args.b", {"c": 1}]}),
        "compensation.argument_map.a[1].c",
        "path_invalid",
    ),
    "const with others": (
        compensating(argument_map={"a": {"const": "$args.a", "b": "$args.b"}}),
        "compensation.argument_map.a",
        "path_invalid",
    ),
    "list in a block": (
        contract(inverse=INVERSE | {"arguments": {"id": ["response.id"]}}),
        "effect.inverse.arguments.id",
        "path_invalid",
    ),
    "null in a block": (
        contract(inverse=INVERSE | {"arguments": {"id": None}}),
        "effect.inverse.arguments.id",
        "path_invalid",
    ),
    "expected reference": (
        compensating(verification=VERIFICATION | {"expect": {"a": "$args"}}),
        "compensation.verification.expect.a",
        "path_invalid",
    ),
    "expected and optional": (
        compensating(verification=VERIFICATION | {"expect": {"state": "$args.state?"}}),
        "compensation.verification.expect.state",
        "path_invalid",
    ),
    "optional inside what is expected": (
        compensating(verification=VERIFICATION | {"expect": {"state": {"word": "$args.state?"}}}),
        "compensation.verification.expect.state.word",
        "path_invalid",
    ),
    "expected and optional in a block": (
        contract(inverse=INVERSE | {"verification": {"tool": "b", "expect": {"state": "request.state?"}}}),
        "effect.inverse.verification.expect.state",
        "path_invalid",
    ),
    "key in an undo": (
        contract(inverse=INVERSE | {"arguments": {"id": "idempotency_key"}}),
        "effect.inverse.arguments.id",
        "path_root_not_allowed",
    ),
    "lookup root in an undo": (
        compensating(argument_map={"a": "$lookup.id"}),
        "compensation.argument_map.a",
        "path_root_not_allowed",
    ),
    "before undeclared": (
        compensating(argument_map={"a": "$before.x"}),
        "compensation.argument_map.a",
        "path_root_not_allowed",
    ),
    "no reference in among": (
        compensating(verification=VERIFICATION | {"among": {"a": "id"}}),
        "compensation.verification.among.a",
        "path_invalid",
    ),
    "before undeclared in among": (
        compensating(verification=VERIFICATION | {"among": {"a": "$before.x"}}),
        "compensation.verification.among.a",
        "path_root_not_allowed",
    ),
    "before undeclared in expect": (
        compensating(verification=VERIFICATION | {"expect": {"a": "$before.x"}}),
        "compensation.verification.expect.a",
        "path_root_not_allowed",
    ),
    "before in when_absent": (
        compensating(when_absent={"tool": "a", "argument_map": {"x": "$before.x"}}) | {"before": BEFORE},
        "compensation.when_absent.argument_map.x",
        "path_root_not_allowed",
    ),
    "result in before": (
        flat(before=BEFORE | {"arguments": {"id": "$result.id"}}),
        "before.arguments.id",
        "path_root_not_allowed",
    ),
    "result in draft": (
        flat(draft=DRAFT | {"arguments": {"id": "$result.id"}}),
        "draft.arguments.id",
        "path_root_not_allowed",
    ),
    "before in promote": (
        flat(draft=DRAFT | {"promote": {"tool": "a", "arguments": {"id": "$before.id"}}}),
        "draft.promote.arguments.id",
        "path_root_not_allowed",
    ),
    "result in lookup by key": (
        flat(lookup=LOOKUP | {"arguments": {"k": "$idempotency_key", "id": "$result.id"}}),
        "lookup.arguments.id",
        "path_root_not_allowed",
    ),
    "args in result_map": (
        flat(lookup=LOOKUP | {"result_map": {"id": "$args.id"}}),
        "lookup.result_map.id",
        "path_root_not_allowed",
    ),
    "deadline both": (
        compensating(deadline={"within_ms": 1, "at": "$result.at"}),
        "compensation.deadline",
        "deadline_shape",
    ),
    "deadline neither": (compensating(deadline={}), "compensation.deadline", "deadline_shape"),
    "deadline from args": (compensating(deadline={"at": "$args.at"}), "compensation.deadline.at", "deadline_path"),
    "deadline number": (compensating(deadline={"at": 5}), "compensation.deadline.at", "deadline_path"),
    "key unused": (flat(lookup=LOOKUP | {"arguments": {"k": "$args.k"}}), "lookup.arguments", "lookup_key_unused"),
    "key optional": (
        flat(lookup=LOOKUP | {"arguments": {"k": "$idempotency_key?"}}),
        "lookup.arguments",
        "lookup_key_unused",
    ),
    "key unused in a block": (
        contract(lookup=CONTRACT_LOOKUP | {"arguments": {}}),
        "effect.lookup.arguments",
        "lookup_key_unused",
    ),
    "handle from args": (flat(draft=DRAFT | {"handle": "$args.id"}), "draft.handle", "draft_handle"),
    "handle missing": (
        flat(draft={name: value for name, value in DRAFT.items() if name != "handle"}),
        "draft.handle",
        "draft_handle",
    ),
}


def _cases(table: dict[str, tuple[Any, str, str]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("data", "path", "text"), table.values(), ids=table.keys())


@_cases(FIELD_CASES | {f"flat: {name}": case for name, case in FLAT_CASES.items()})
def test_validate_manifest_refuses_one_thing_with_its_place(data: Any, path: str, text: str) -> None:
    normalized, errors = validate_manifest(data)

    assert normalized is None
    assert [error["path"] for error in errors] == [path]
    assert text in errors[0]["message"]


@_cases(CODE_CASES)
def test_validate_manifest_gives_a_contract_check_its_code(data: Any, path: str, text: str) -> None:
    _, errors = validate_manifest(data)

    assert [(error["path"], error.get("code")) for error in errors] == [(path, f"effect/{text}")]


@pytest.mark.parametrize("field", ["compensation", "lookup", "draft"])
def test_validate_manifest_refuses_both_forms_in_one(field: str) -> None:
    parts = {"compensation": flat()["compensation"], "lookup": LOOKUP, "draft": DRAFT}

    _, errors = validate_manifest(contract() | {field: parts[field]})

    assert [error["path"] for error in errors] == [field]
    assert "one form" in errors[0]["message"]


@pytest.mark.parametrize("data", SAMPLES.values(), ids=SAMPLES.keys())
def test_validate_manifest_accepts_a_sound_one(data: Any) -> None:
    assert validate_manifest(data)[1] == []


def test_validate_manifest_accepts_a_look_up_by_id_that_reads_the_result() -> None:
    lookup = {"tool": "shop.find", "by": "id", "arguments": {"id": "$result.id"}}

    assert validate_manifest(flat(lookup=lookup))[1] == []


def test_validate_manifest_accepts_residue_of_an_inverse_in_a_block() -> None:
    assert validate_manifest(contract(inverse=INVERSE | {"residue": "a number is used up"}))[1] == []
