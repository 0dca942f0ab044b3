"""Make manifests and snapshots; every argument is by keyword."""

from collections.abc import Mapping
from typing import Any

from manifests_registry.core.snapshot import Entry, Snapshot, build_snapshot
from reversi_sdk.manifests import manifest_checksum, manifest_from_normal, validate_manifest


def make_entry(*, tool: str, source: str = "tools.yaml:1", **fields: Any) -> Entry:
    data = {"tool": tool, "effect": "idempotent", "permission": "shop:write", **fields}
    normalized, errors = validate_manifest(data)
    assert normalized is not None, errors
    return Entry(manifest_from_normal(normalized), normalized, manifest_checksum(normalized), source)


def make_snapshot(*manifests: Mapping[str, Any]) -> Snapshot:
    snapshot, problems = build_snapshot([make_entry(**manifest) for manifest in manifests])
    assert problems == ()
    return snapshot


READ: Mapping[str, Any] = {"tool": "shop.get", "effect": "read_only", "permission": "shop:read"}
CANCEL: Mapping[str, Any] = {"tool": "shop.cancel", "compensation_only": True}
ORDER: Mapping[str, Any] = {
    "tool": "shop.order",
    "effect": "reversible",
    "compensation": {
        "tool": "shop.cancel",
        "argument_map": {"id": "$result.id", "item": "$args.item"},
        "verification": {"tool": "shop.get", "arguments": {"id": "$result.id"}, "expect": {"state": "$args.want"}},
    },
}
SHOP = (READ, CANCEL, ORDER)


def shop(**order: Any) -> Snapshot:
    """A shop whose `shop.order` has these fields more."""
    return make_snapshot(READ, CANCEL, {**ORDER, **order})
