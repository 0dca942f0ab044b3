"""What only all manifests together show."""

from typing import Any

import pytest

from manifests_registry.core.snapshot import build_snapshot
from tests.manifests_registry.factories import CANCEL, ORDER, READ, make_entry, shop

UNDO: dict[str, Any] = {"tool": "shop.cancel", "argument_map": {"id": "$result.id"}}


def flat(**extra: Any) -> dict[str, Any]:
    return {"tool": "shop.order", "effect": "reversible", "compensation": UNDO, **extra}


def block(**extra: Any) -> dict[str, Any]:
    inverse = {"operation": "shop.cancel", "arguments": {"id": "response.id"}}
    return {"tool": "shop.order", "effect": {"class": "reversible", "inverse": inverse, **extra}}


def undone_by(tool: str, **extra: Any) -> dict[str, Any]:
    return flat(compensation={**UNDO, "tool": tool, **extra})


def read_back(tool: str) -> dict[str, Any]:
    return {"verification": {"tool": tool, "expect": {"state": "gone"}}}


PROBLEMS: dict[str, tuple[dict[str, Any], str, str, str | None]] = {
    "compensation missing": (undone_by("shop.gone"), "compensation.tool", "no manifest for compensation tool", None),
    "verification missing": (
        undone_by("shop.cancel", **read_back("shop.gone")),
        "compensation.verification.tool",
        "no manifest for verification tool shop.gone",
        None,
    ),
    "verification changes": (
        undone_by("shop.cancel", **read_back("shop.cancel")),
        "compensation.verification.tool",
        "a verification tool must be read_only, and shop.cancel is not",
        None,
    ),
    "fallback missing": (
        undone_by("shop.cancel", fallback={"tool": "shop.gone"}),
        "compensation.fallback.tool",
        "no manifest for fallback tool shop.gone",
        None,
    ),
    "required missing": (flat(requires=["shop.gone"]), "requires[0].tool", "no manifest for required tool", None),
    "replacement missing": (
        flat(status="deprecated", replaced_by="shop.gone"),
        "replaced_by",
        "no manifest for replacement tool shop.gone",
        None,
    ),
    "before missing": (flat(before={"tool": "shop.gone"}), "before.tool", "no manifest for before tool", None),
    "before changes": (
        flat(before={"tool": "shop.cancel"}),
        "before.tool",
        "a before tool must be read_only, and shop.cancel is not",
        None,
    ),
    "lookup changes": (
        flat(lookup={"tool": "shop.cancel", "by": "id", "arguments": {"id": "$args.id"}}),
        "lookup.tool",
        "a lookup tool must be read_only, and shop.cancel is not",
        None,
    ),
    "lookup of a block changes": (
        block(lookup={"operation": "shop.cancel", "by": "id", "arguments": {"id": "request.id"}}),
        "effect.lookup.operation",
        "a lookup tool must be read_only, and shop.cancel is not",
        "effect/lookup_not_read",
    ),
    "inverse of a block missing": (
        {"tool": "shop.order", "effect": {"class": "reversible", "inverse": {"operation": "shop.gone"}}},
        "effect.inverse.operation",
        "no manifest for inverse tool shop.gone",
        "effect/operation_missing",
    ),
    "inverse of a block reads": (
        {"tool": "shop.order", "effect": {"class": "reversible", "inverse": {"operation": "shop.get"}}},
        "effect.inverse.operation",
        "shop.get only reads: it cannot be the inverse",
        "effect/follow_up_is_read",
    ),
}


@pytest.mark.parametrize("case", PROBLEMS)
def test_build_snapshot_finds(case: str) -> None:
    manifest, path, message, code = PROBLEMS[case]

    _, problems = build_snapshot([make_entry(**READ), make_entry(**CANCEL), make_entry(**manifest)])

    assert [(problem.tool, problem.path, problem.code) for problem in problems] == [("shop.order", path, code)]
    assert problems[0].message.startswith(message)


def test_build_snapshot_accepts_what_fits_together() -> None:
    _, problems = build_snapshot(
        [make_entry(**READ), make_entry(**CANCEL), make_entry(**ORDER), make_entry(**block())][:3]
    )

    assert problems == ()


def test_build_snapshot_refuses_two_manifests_of_one_tool() -> None:
    first, second = make_entry(**READ), make_entry(**READ, source="other.yaml:7")

    _, problems = build_snapshot([first, second])

    assert [(problem.source, problem.path) for problem in problems] == [("other.yaml:7", "tool")]
    assert "tools.yaml:1" in problems[0].message


def test_build_snapshot_lets_a_flat_undo_be_a_read() -> None:
    # The contract check judges contract blocks only (D4).
    _, problems = build_snapshot([make_entry(**READ), make_entry(**undone_by("shop.get"))])

    assert problems == ()


def test_build_snapshot_refuses_a_map_over_the_key_carrier() -> None:
    cancel = make_entry(**CANCEL, key_carrier={"argument": "key"})
    inverse = {"operation": "shop.cancel", "arguments": {"key": "request.key"}}
    order = make_entry(tool="shop.order", effect={"class": "reversible", "inverse": inverse})

    _, problems = build_snapshot([cancel, order])

    assert [problem.code for problem in problems] == ["effect/mapping_sets_safety_control"]
    assert build_snapshot([cancel, make_entry(**block())])[1] == ()


def test_involved_names_every_follow_up_once() -> None:
    snapshot = shop(before={"tool": "shop.get", "arguments": {}})
    order = snapshot.get("shop.order")
    assert order is not None

    involved = snapshot.involved(order)

    assert [entry.manifest.tool for entry in involved] == ["shop.order", "shop.cancel", "shop.get"]
