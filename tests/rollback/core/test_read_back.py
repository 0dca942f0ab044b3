"""What a read-back must show (D37)."""

from __future__ import annotations

from typing import Any

import pytest

from reversi_sdk.model import Verification
from reversi_sdk.references import Const, MapValue, Reference, Spelling, parse_map_value, parse_reference
from rollback.core.read_back import Expectation, expectation_of, first_mismatch
from tests.rollback.factories import make_handle, undoable


def expect(
    expected: dict[str, Any], *, values: dict[str, Any] | None = None, redact: str | None = None, **looking: Any
) -> Expectation:
    verification = {"tool": "shop.get", "arguments": {"id": "$result.id"}, "expect": expected, **looking}
    undo = undoable(undo={"verification": verification}).undo
    assert undo is not None
    assert undo.verification is not None
    hidden: tuple[Reference, ...] = () if redact is None else (parse_reference(redact, spelling=Spelling.FLAT),)
    found = expectation_of(undo.verification, make_handle(values={"$result.id": "o1", **(values or {})}), hidden)
    assert isinstance(found, Expectation)
    return found


@pytest.mark.parametrize(
    ("expected", "answer", "mismatch"),
    [
        ({"status": "canceled"}, {"status": "canceled", "more": 1}, None),
        ({"status": "canceled"}, {"status": "succeeded"}, '`status` is "succeeded", expected "canceled"'),
        ({"status": "canceled"}, {}, '`status` is missing, expected "canceled"'),
        ({"status": "canceled"}, None, '`status` is missing, expected "canceled"'),
        ({"items.0.id": 1}, {"items": [{"id": 1}]}, None),
        ({"items.0.id": 1}, {"items": []}, "`items.0.id` is missing, expected 1"),
        ({"n": 1}, {"n": 1.0}, None),
        ({"n": 1}, {"n": True}, "`n` is true, expected 1"),
        ({"gone": None}, {"gone": None}, None),
        ({"gone": None}, {}, "`gone` is missing, expected null"),
        ({"o": {"a": 1, "b": [1]}}, {"o": {"b": [1], "a": 1}}, None),
        ({"o": {"a": 1}}, {"o": {"a": 1, "b": 2}}, '`o` is {"a":1,"b":2}, expected {"a":1}'),
        ({"a": 1, "b": 2}, {"a": 0, "b": 0}, "`a` is 0, expected 1"),
    ],
)
def test_first_mismatch(expected: dict[str, Any], answer: Any, mismatch: str | None) -> None:
    assert first_mismatch(expect(expected), answer) == mismatch


def test_expected_values_may_be_references() -> None:
    expectation = expect({"text": "$args.text"}, values={"$args.text": "old"})

    assert first_mismatch(expectation, {"text": "new"}) == '`text` is "new", expected "old"'


def test_redacted_values_are_not_told() -> None:
    expectation = expect({"text": "$args.text"}, values={"$args.text": "old"}, redact="$args.text")

    assert first_mismatch(expectation, {"text": "new"}) == '`text` is [redacted], expected "[redacted]"'


@pytest.mark.parametrize(
    ("expected", "answer", "mismatch"),
    [
        ({"config.password": "$args.text"}, {"config": {"password": "s3cr3t"}}, "is [redacted]"),
        ({"config.password": "old"}, {"config": {"password": "s3cr3t"}}, "is [redacted]"),
        ({"config": {"password": "old"}}, {"config": {"password": "s3cr3t"}}, "is [redacted]"),
        ({"config": None}, {"config": [{"token": "s3cr3t"}]}, 'is [{"token":"[redacted]"}], expected null'),
        ({"api_key": "$args.text"}, {}, 'is missing, expected "[redacted]"'),
    ],
)
def test_credentials_in_an_answer_are_not_told(expected: dict[str, Any], answer: Any, mismatch: str) -> None:
    told = first_mismatch(expect(expected, values={"$args.text": "old"}), answer)

    assert told is not None
    assert mismatch in told
    assert "s3cr3t" not in told
    assert "old" not in told


@pytest.mark.parametrize("expected", [{}, {"text": ["$args.text?"], "state": "gone"}])
def test_a_read_back_that_would_check_less_than_declared_is_not_made(expected: dict[str, Any]) -> None:
    # Manifests that say so are refused; this is for those that were kept before.
    values = {path: read_value(value) for path, value in expected.items()}
    verification = Verification("shop.get", arguments={}, expect=values, retries=0, backoff_ms=0)

    found = expectation_of(verification, make_handle(values={}), ())

    assert isinstance(found, str)
    assert found.startswith("cannot verify: ")


def read_value(value: Any) -> MapValue:
    return parse_map_value(value, spelling=Spelling.FLAT) if isinstance(value, list) else Const(value)


def test_long_values_are_cut() -> None:
    mismatch = first_mismatch(expect({"text": "x"}), {"text": "y" * 10_000})

    assert mismatch is not None
    assert len(mismatch) < 300


@pytest.mark.parametrize("missing", ["argument", "expectation"])
def test_a_read_back_that_cannot_be_filled_says_so(missing: str) -> None:
    expected = {"text": "$args.text"}
    values = {"$args.text": "old"} if missing == "argument" else {"$result.id": "o1"}
    undo = undoable(
        undo={"verification": {"tool": "shop.get", "arguments": {"id": "$result.id"}, "expect": expected}}
    ).undo
    assert undo is not None
    assert undo.verification is not None

    found = expectation_of(undo.verification, make_handle(values=values), ())

    assert isinstance(found, str)
    assert found.startswith("cannot verify: arguments unavailable")


@pytest.mark.parametrize(("is_unordered", "mismatch"), [(True, None), (False, "`l` is [[2,1],3], expected [3,[1,2]]")])
def test_order_counts_unless_the_manifest_says_otherwise(is_unordered: bool, mismatch: str | None) -> None:
    expectation = expect({"l": [3, [1, 2]]}, unordered=is_unordered)

    assert first_mismatch(expectation, {"l": [[2, 1], 3]}) == mismatch


def test_unordered_still_counts_items() -> None:
    told = first_mismatch(expect({"l": [1, 2]}, unordered=True), {"l": [2, 1, 1]})

    assert told == "`l` is [2,1,1], expected [1,2]"


def test_only_chosen_items_are_looked_at() -> None:
    expectation = expect({"l": []}, values={"$result.made": ["a"]}, among={"l": "$result.made"})

    assert first_mismatch(expectation, {"l": ["b", "c"]}) is None
    assert first_mismatch(expectation, {"l": ["b", "a"]}) == '`l` is ["a"], expected []'
    assert first_mismatch(expectation, {"l": "a"}) == "`l` of the answer is no list"


def test_a_choice_that_cannot_be_made_says_so() -> None:
    undo = undoable(
        undo={"verification": {"tool": "shop.get", "expect": {"l": []}, "among": {"l": "$result.made"}}}
    ).undo
    assert undo is not None
    assert undo.verification is not None

    found = expectation_of(undo.verification, make_handle(values={}), ())

    assert found == "cannot verify: arguments unavailable (argument l: $result.made names nothing)"
