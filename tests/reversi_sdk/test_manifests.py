from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reversi_sdk import validate_manifest
from reversi_sdk.manifests import canonical_manifest, manifest_checksum, manifest_from_normal
from reversi_sdk.model import (
    AbsentWhen,
    CompensationKind,
    Deadline,
    Effect,
    KeyCarrier,
    Manifest,
    ManifestStatus,
    Retry,
)
from reversi_sdk.references import Const, Root, Spelling, parse_reference
from tests.reversi_sdk.sdk_factories import (
    AMENDS,
    BEFORE,
    EXAMPLE,
    SAMPLES,
    compensating,
    contract,
    flat,
    full_contract,
    full_flat,
    reading,
)


def normal(data: Any) -> dict[str, Any]:
    normalized, errors = validate_manifest(data)
    assert errors == []
    assert normalized is not None
    return normalized


def model(data: Any) -> Manifest:
    return manifest_from_normal(normal(data))


def test_validate_manifest_writes_defaults_and_milliseconds() -> None:
    assert normal(EXAMPLE[2]) == {
        "tool": "stripe.refund",
        "effect": "idempotent",
        "permission": "payments:write",
        "description": "Refund a charge.",
        "approval": "never",
        "version": 1,
        "status": "approved",
        "retry": {"attempts": 3, "base_ms": 200, "max_ms": 5000},
    }


def test_validate_manifest_keeps_an_approval_as_given() -> None:
    assert normal(EXAMPLE[1])["approval"] == {
        "roles": ["finance"],
        "quorum": 2,
        "timeout": 900_000,
        "on_timeout": "escalate",
        "escalate_to": ["cfo"],
    }


def test_validate_manifest_forces_approval_for_irreversible_tools() -> None:
    assert normal({"tool": "m", "effect": "irreversible", "permission": "p"})["approval"] == "always"
    assert normal({"tool": "m", "effect": {}, "permission": "p"})["approval"] == "always"


def test_validate_manifest_writes_requirements_as_objects() -> None:
    data = reading(requires=["a", {"tool": "b"}])

    assert normal(data)["requires"] == [{"tool": name, "status": "succeeded"} for name in ("a", "b")]


def test_validate_manifest_leaves_out_flags_that_say_nothing() -> None:
    data = compensating(self_inverse=False, repeatable=False) | {
        "compensation_only": False,
        "before": {"tool": "shop.get", "on_missing": "refuse"},
    }

    normalized = normal(data)

    assert "compensation_only" not in normalized
    assert normalized["before"] == {"tool": "shop.get", "arguments": {}}
    assert {"self_inverse", "repeatable"}.isdisjoint(normalized["compensation"])


def test_validate_manifest_writes_the_class_and_drops_the_older_boolean() -> None:
    assert normal({"tool": "m", "effect": {"reversible": False}, "permission": "p"})["effect"] == {
        "class": "irreversible"
    }


def test_validate_manifest_keeps_one_word_for_each_follow_up_of_a_block() -> None:
    inverse = normal(full_contract())["effect"]["inverse"]

    assert inverse["verification"]["operation"] == "shop.get"
    assert inverse["when_absent"]["arguments"] == {"id": "request.id"}


def test_validate_manifest_lists_everything_in_document_order() -> None:
    data = {
        "timeout_ms": "soon",
        "tol": "a",
        "compensation": {"verification": {"expect": {}, "retry": 1}, "tool": "b b"},
        "effect": "compensable",
        "requires": ["a", 5, {"tool": "a"}],
    }

    _, errors = validate_manifest(data)

    assert [error["path"] for error in errors] == [
        "timeout_ms",
        "tol",
        "compensation.verification.expect",
        "compensation.verification.retry",
        "compensation.verification.tool",
        "compensation.tool",
        "requires[1]",
        "requires[2]",
        "tool",
        "permission",
    ]


def test_validate_manifest_does_not_change_its_input() -> None:
    data = full_flat()
    before = copy.deepcopy(data)

    normal(data)["compensation"]["argument_map"]["lines"].append("x")

    assert data == before


@pytest.mark.parametrize("data", SAMPLES.values(), ids=SAMPLES.keys())
def test_validate_manifest_reads_its_normal_form_as_itself(data: Any) -> None:
    normalized = normal(data)

    assert normal(normalized) == normalized


def _shuffled(value: Any, chance: random.Random) -> Any:
    match value:
        case dict():
            names = list(value)
            chance.shuffle(names)
            return {name: _shuffled(value[name], chance) for name in names}
        case list():
            return [_shuffled(item, chance) for item in value]
        case _:
            return value


@given(data=st.sampled_from(list(SAMPLES.values())), chance=st.randoms())
def test_manifest_checksum_ignores_key_order(data: Any, chance: random.Random) -> None:
    shuffled = _shuffled(data, chance)

    assert manifest_checksum(normal(shuffled)) == manifest_checksum(normal(data))
    assert canonical_manifest(normal(shuffled)) == canonical_manifest(normal(data))


def test_manifest_checksum_changes_with_a_value() -> None:
    assert manifest_checksum(normal(reading(version=2))) != manifest_checksum(normal(reading()))
    assert len(manifest_checksum(normal(reading()))) == 64


class Colour:
    """Something that is no JSON value."""


# Too long to be written out, which a strategy of one constant would try.
_ENDLESS = st.sampled_from([5000, 6000]).map(lambda digits: 10**digits)
_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    _ENDLESS,
    st.floats(),
    st.text(),
    st.binary(max_size=4),
    st.sampled_from(["\0", "\ud800", "$args", "$args.a", "30s", "a//b", Colour(), frozenset(), 1j]),
)
_WORDS = sorted(
    {"const", "operation", "class", "inverse", "compensate", "at", "within_ms", "by", "handle", "promote", "expect"}
    | {name for data in SAMPLES.values() for name in data}
    | set(full_flat()["compensation"])
    | set(full_contract()["effect"]["inverse"])
)
_KEYS = st.one_of(st.sampled_from(_WORDS), st.text(max_size=5), st.integers(), st.none(), _ENDLESS)
_GARBAGE = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(_KEYS, inner, max_size=6), st.tuples(inner, inner)
    ),
    max_leaves=25,
)


def _assert_answer(data: Any) -> None:
    normalized, errors = validate_manifest(data)

    assert (normalized is None) == bool(errors)
    for error in errors:
        assert set(error) <= {"path", "message", "code"}
        assert error["message"].isprintable()


@given(_GARBAGE)
def test_validate_manifest_never_raises_on_garbage(data: Any) -> None:
    _assert_answer(data)


@given(st.data())
@settings(max_examples=300)
def test_validate_manifest_never_raises_on_a_spoiled_manifest(data: st.DataObject) -> None:
    manifest = copy.deepcopy(data.draw(st.sampled_from(list(SAMPLES.values()))))
    place: Any = manifest
    while True:
        key = data.draw(st.sampled_from(list(place) if isinstance(place, dict) else range(len(place))))
        inner = place[key]
        if not isinstance(inner, (dict, list)) or not inner or data.draw(st.booleans()):
            break
        place = inner
    place[key] = data.draw(_GARBAGE)

    _assert_answer(manifest)


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"const": value}
    return value


def _inside_itself() -> Any:
    value: list[Any] = []
    value.extend([value] * 100)
    return value


STRANGE: dict[str, tuple[Any, str]] = {
    "nothing": (None, "a manifest is an object, not null"),
    "list": ([], "a manifest is an object, not a list"),
    "text": ("x", "a manifest is an object, not a text"),
    "number": (5, "a manifest is an object, not a number"),
    "bytes": (b"x", "bytes is not a JSON value"),
    "object of another kind": (Colour(), "Colour is not a JSON value"),
    "inside itself": (_inside_itself(), "is nested deeper than 64"),
    "too deep": (compensating(argument_map={"a": _nested(70)}), "is nested deeper than 64"),
    "far too deep": (reading(owner=_nested(50_000)), "is nested deeper than 64"),
    "too many": (reading(touches=["a"] * 100_001), "holds more than 100000 values"),
    "nul": (reading(owner="a\0b"), "holds a NUL character"),
    "nul in a key": (reading(**{"a\0": 1}), "a key holds a NUL character"),
    "surrogate": (reading(owner="\udc00"), "a lone surrogate is not valid text"),
    "big number": (reading(version=2**53), "integers of 2^53 and more cannot be carried exactly; use a string"),
    "endless number": (
        reading(timeout_ms=10**5000),
        "integers of 2^53 and more cannot be carried exactly; use a string",
    ),
    "nan": (reading(version=float("nan")), "NaN and infinite numbers are not JSON"),
    "tuple": (reading(touches=("a",)), "must be a list, not tuple"),
}


@pytest.mark.parametrize(("data", "message"), STRANGE.values(), ids=STRANGE.keys())
def test_validate_manifest_refuses_what_is_strange(data: Any, message: str) -> None:
    normalized, errors = validate_manifest(data)

    assert normalized is None
    assert errors[0]["message"] == message


def test_validate_manifest_answers_soon_about_a_hundred_thousand_wrong_fields() -> None:
    _, errors = validate_manifest(reading(**{f"ownr{number}": 1 for number in range(90_000)}))

    assert len(errors) == 90_000
    assert sum("did you mean" in error["message"] for error in errors) <= 50


def test_validate_manifest_refuses_a_number_as_key() -> None:
    _, errors = validate_manifest({**reading(), 5: "x"})

    assert [(error["path"], error["message"]) for error in errors] == [("", "a key must be a string, not int")]


def test_manifest_from_normal_carries_every_field_of_the_flat_form() -> None:
    manifest = model(full_flat())

    assert (manifest.effect, manifest.version, manifest.status) == (Effect.COMPENSABLE, 3, ManifestStatus.DEPRECATED)
    assert manifest.requires == ("shop.login", "shop.cart")
    assert manifest.approval.is_required
    assert manifest.approval.timeout_ms == 900_000
    assert manifest.key_carrier == KeyCarrier("key", False)
    assert manifest.redaction == (parse_reference("$args.card", spelling=Spelling.FLAT),)
    assert (manifest.observed_by_gateway, manifest.is_compensation_only) == (True, True)
    assert manifest.before is not None
    assert manifest.before.absent_when == AbsentWhen(("found",), False, None)
    assert manifest.before.proceeds_on_missing
    assert manifest.lookup is not None
    assert (manifest.lookup.settle_after_ms, manifest.lookup.valid_for_ms) == (5000, 86_400_000)
    assert manifest.lookup.result_map is not None
    assert manifest.draft is not None
    assert manifest.draft.handle.key == "$result.id"
    assert manifest.draft.discard is not None
    assert manifest.draft.discard.tool == "shop.drop"


def test_manifest_from_normal_carries_the_undo_of_the_flat_form() -> None:
    undo = model(full_flat()).undo

    assert undo is not None
    assert (undo.tool, undo.kind, undo.residue) == (
        "shop.cancel",
        CompensationKind.COMPENSATION,
        ("the customer saw it",),
    )
    assert undo.arguments["note"] == Const(None)
    assert undo.verification is not None
    assert (undo.verification.retries, undo.verification.backoff_ms) == (2, 2000)
    assert undo.deadline == Deadline(7_200_000, None)
    assert undo.fallback is not None
    assert undo.fallback.deadline == Deadline(None, parse_reference("$result.until", spelling=Spelling.FLAT))
    assert undo.when_absent is not None
    assert undo.when_absent.residue == ("a gap",)


def test_manifest_from_normal_gives_both_forms_one_model() -> None:
    block = model(contract(compensate=AMENDS)).undo

    assert block is not None
    assert block.kind is CompensationKind.INVERSE
    assert block.arguments["id"] == parse_reference("response.id", spelling=Spelling.CONTRACT)
    assert block.fallback is not None
    assert (block.fallback.tool, block.fallback.kind) == ("shop.refund", CompensationKind.COMPENSATION)


def test_manifest_from_normal_reads_a_compensable_block() -> None:
    manifest = model(contract(inverse=None, compensate=AMENDS, **{"class": "compensable"}))

    assert manifest.effect is Effect.COMPENSABLE
    assert manifest.undo is not None
    assert (manifest.undo.kind, manifest.undo.fallback) == (CompensationKind.COMPENSATION, None)


def test_manifest_from_normal_reads_every_field_of_a_block() -> None:
    manifest = model(full_contract())

    assert manifest.before is not None
    assert [value.key for value in manifest.before.arguments.values() if not isinstance(value, Const)] == [  # type: ignore[union-attr]
        "$args.id",
        "$args.b",
    ]
    assert manifest.redaction[0].root is Root.ARGS
    assert manifest.lookup is not None
    assert manifest.lookup.settle_after_ms == 0
    assert manifest.draft is not None
    assert manifest.draft.discard is None


WORDS = {"read": Effect.READ_ONLY, "irreversible": Effect.IRREVERSIBLE, None: Effect.IRREVERSIBLE}


@pytest.mark.parametrize("word", WORDS)
def test_manifest_from_normal_reads_the_class(word: str | None) -> None:
    manifest = model(contract(inverse=None, **{"class": word}))

    assert manifest.effect is WORDS[word]
    assert manifest.undo is None


def test_manifest_from_normal_reads_no_approval_as_never() -> None:
    assert not model(reading()).approval.is_required
    assert not model(reading(approval={"required": False, "roles": ["a"]})).approval.is_required
    assert model(reading(approval={})).approval.is_required
    assert model(reading(approval="always")).approval.is_required


def test_manifest_from_normal_reads_small_parts() -> None:
    manifest = model(
        reading(retry={}, key_carrier={"meta": True}, before={"tool": "a", "absent_when": {"error": "x*"}})
    )

    assert manifest.retry == Retry(3, 200, 5000)
    assert manifest.key_carrier == KeyCarrier(None, True)
    assert manifest.before is not None
    assert manifest.before.absent_when == AbsentWhen(None, None, "x*")


def test_manifest_tells_what_it_changes() -> None:
    facts = {effect: (model(data).is_changing, model(data).needs_undo) for effect, data in _BY_EFFECT.items()}

    assert facts == {"read_only": (False, False), "idempotent": (True, False), "compensable": (True, True)}


_BY_EFFECT = {"read_only": reading(), "idempotent": reading(effect="idempotent"), "compensable": flat(before=BEFORE)}
