"""Manifests for the tests of the manifest language: the smallest sound one per form, and the documents' example."""

from __future__ import annotations

from typing import Any


def flat(**changes: Any) -> dict[str, Any]:
    """A sound compensable manifest in the flat form; a change of None takes the field away."""
    data: dict[str, Any] = {
        "tool": "shop.order",
        "effect": "compensable",
        "permission": "shop:write",
        "compensation": {"tool": "shop.cancel", "argument_map": {"id": "$result.id"}},
    }
    return _changed(data, changes)


def reading(**changes: Any) -> dict[str, Any]:
    """A sound read-only manifest."""
    return _changed({"tool": "shop.get", "effect": "read_only", "permission": "shop:read"}, changes)


def compensating(**changes: Any) -> dict[str, Any]:
    """A sound flat manifest whose compensation differs as told."""
    return flat(compensation=_changed(flat()["compensation"], changes))


def contract(**changes: Any) -> dict[str, Any]:
    """A sound manifest in the contract form whose reversible block differs as told."""
    block: dict[str, Any] = {
        "class": "reversible",
        "inverse": {"operation": "shop.cancel", "arguments": {"id": "response.id"}},
    }
    return {"tool": "shop.order", "permission": "shop:write", "effect": _changed(block, changes)}


def _changed(data: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = data | changes
    return {name: value for name, value in merged.items() if value is not None}


VERIFICATION: dict[str, Any] = {"tool": "shop.get", "arguments": {"id": "$result.id"}, "expect": {"state": "cancelled"}}
BEFORE: dict[str, Any] = {
    "tool": "shop.get",
    "arguments": {"id": "$args.id"},
    "absent_when": {"path": "found", "equals": False},
}
DRAFT: dict[str, Any] = {
    "tool": "shop.order",
    "arguments": {"id": "$args.id", "draft": {"const": True}},
    "handle": "$result.id",
    "promote": {"tool": "shop.publish", "arguments": {"id": "$result.id"}},
    "discard": {"tool": "shop.drop", "arguments": {"id": "$result.id"}},
}
LOOKUP: dict[str, Any] = {"tool": "shop.find", "by": "idempotency_key", "arguments": {"key": "$idempotency_key"}}

CONTRACT_VERIFICATION: dict[str, Any] = {
    "tool": "shop.get",
    "arguments": {"id": "response.id"},
    "expect": {"state": "cancelled"},
}
CONTRACT_DRAFT: dict[str, Any] = {
    "operation": "shop.order",
    "arguments": {"id": "request.id", "draft": {"const": True}},
    "handle": "response.id",
    "promote": {"operation": "shop.publish", "arguments": {"id": "response.id"}},
}
CONTRACT_LOOKUP: dict[str, Any] = {
    "operation": "shop.find",
    "by": "idempotency_key",
    "arguments": {"key": "idempotency_key"},
}
AMENDS: dict[str, Any] = {"operation": "shop.refund", "arguments": {"id": "response.id"}}


def full_flat() -> dict[str, Any]:
    """A flat manifest that uses every field there is."""
    return flat(
        description="Place an order",
        approval={
            "required": True,
            "roles": ["sales"],
            "quorum": 1,
            "timeout": "15m",
            "on_timeout": "escalate",
            "escalate_to": ["boss"],
        },
        compensation={
            "tool": "shop.cancel",
            "argument_map": {
                "id": "$result.id",
                "note": {"const": None},
                "lines": ["$args.lines[0]?", {"a": "$before.a"}],
            },
            "kind": "compensation",
            "residue": "the customer saw it",
            "requires_approval": True,
            "timeout_ms": "20s",
            "verification": VERIFICATION
            | {"retries": 2, "backoff_ms": "2s", "unordered": True, "among": {"lines": "$result.lines"}},
            "deadline": {"within_ms": "2h"},
            "fallback": {"tool": "shop.refund", "argument_map": {}, "deadline": {"at": "$result.until"}},
            "when_absent": {"tool": "shop.drop", "argument_map": {"id": "$args.id"}, "residue": ["a gap"]},
            "self_inverse": False,
            "repeatable": False,
        },
        requires=["shop.login", {"tool": "shop.cart", "status": "succeeded"}],
        version=3,
        status="deprecated",
        replaced_by="shop.order2",
        owner="shop team",
        oncall="shop pager",
        risk={"data_class": "financial", "blast_radius": "high", "environment": "prod"},
        timeout_ms="30s",
        idempotency={"key": "order-{{args.id}}", "scope": "global"},
        key_carrier={"argument": "key"},
        audit={"retention_days": 30, "evidence_export": "required", "redaction": ["$args.card"]},
        schema_hash="sha256:0123456789abcdef",
        before=BEFORE
        | {
            "on_missing": "proceed",
            "unordered": True,
            "unusable_when": {"path": "text", "glob": "*?"},
            "among": {"lines": "$args.lines"},
        },
        touches=["order:{{args.id}}", "stock:{{result.id}}"],
        lookup=LOOKUP | {"result_map": {"id": "$lookup.items[0].id"}, "settle_after": "5s", "valid_for": "1d"},
        draft=DRAFT,
        summary="order {{args.id}}",
        observed_by="gateway",
        compensation_only=True,
    )


def full_contract() -> dict[str, Any]:
    """A contract manifest that uses every field of the block."""
    inverse = {
        "operation": "shop.cancel",
        "arguments": {"id": "response.id", "old": "before.value?", "note": {"const": 1}},
        "residue": ["a number is used up"],
        "requires_approval": False,
        "timeout_ms": 500,
        "verification": CONTRACT_VERIFICATION,
        "deadline": {"within_ms": "2h"},
        "when_absent": {"operation": "shop.drop", "arguments": {"id": "request.id"}},
    }
    lookup = CONTRACT_LOOKUP | {"result_map": {"id": "lookup.id"}, "settle_after": 0}
    data = contract(inverse=inverse, compensate=AMENDS, lookup=lookup, draft=CONTRACT_DRAFT, reversible=True)
    return data | {
        "before": BEFORE | {"arguments": {"id": "request.id", "b": "$args.b"}, "among": {"lines": "request.lines"}},
        "audit": {"redaction": ["request.card"]},
    }


EXAMPLE: list[dict[str, Any]] = [
    {
        "tool": "stripe.get_charge",
        "description": "Read one charge.",
        "effect": "read_only",
        "permission": "payments:read",
    },
    {
        "tool": "stripe.create_charge",
        "description": "Charge a card.",
        "effect": "compensable",
        "permission": "payments:write",
        "owner": "payments-team@example.com",
        "oncall": "payments-oncall",
        "risk": {"data_class": "financial", "blast_radius": "high", "environment": "prod"},
        "timeout_ms": "30s",
        "idempotency": {"key": "charge-{{args.order_id}}", "scope": "global"},
        "audit": {"retention_days": 2555, "evidence_export": "required", "redaction": ["$args.card_token"]},
        "approval": {
            "roles": ["finance"],
            "quorum": 2,
            "timeout": "15m",
            "on_timeout": "escalate",
            "escalate_to": ["cfo"],
        },
        "compensation": {
            "tool": "stripe.refund",
            "kind": "compensation",
            "residue": ["the charge still appears on the customer's statement"],
            "requires_approval": False,
            "timeout_ms": "20s",
            "argument_map": {"charge_id": "$result.id", "amount": "$args.amount"},
            "verification": {
                "tool": "stripe.get_charge",
                "arguments": {"charge_id": "$result.id"},
                "expect": {"refunded": True},
                "retries": 3,
                "backoff_ms": "2s",
            },
        },
    },
    {
        "tool": "stripe.refund",
        "description": "Refund a charge.",
        "effect": "idempotent",
        "permission": "payments:write",
        "retry": {"attempts": 3, "base_ms": "200ms", "max_ms": "5s"},
    },
]
SAMPLES: dict[str, dict[str, Any]] = {
    "smallest": reading(),
    "flat": flat(),
    "full flat": full_flat(),
    "contract": contract(),
    "full contract": full_contract(),
    "irreversible": {"tool": "mail.send", "effect": "irreversible", "permission": "mail"},
    "approval by rules": reading(approval={"roles": ["a"]}),
    "retry of nothing": reading(retry={}),
    "self inverse": compensating(tool="shop.order", self_inverse=True, repeatable=True),
    "block without class": {"tool": "mail.send", "effect": {}, "permission": "mail"},
    "key in meta": reading(key_carrier={"meta": True}),
    "absent by error": flat(before={"tool": "shop.get", "absent_when": {"error": "*not found*"}}),
    **{f"example {data['tool']}": data for data in EXAMPLE},
}
