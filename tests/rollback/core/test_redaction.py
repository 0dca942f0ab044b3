"""What a person may see of a value (D14)."""

from __future__ import annotations

from typing import Any

import pytest

from reversi_sdk.references import MISSING, Found, Spelling, parse_reference
from rollback.core.redaction import redacting


def show(reference: str, value: Any, *paths: str) -> Any:
    hidden = [parse_reference(path, spelling=Spelling.FLAT) for path in paths]
    found = redacting(lambda _: Found(value), hidden)(parse_reference(reference, spelling=Spelling.FLAT))
    assert isinstance(found, Found)
    return found.value


@pytest.mark.parametrize(
    ("reference", "value", "path", "shown"),
    [
        ("$args.card", "4111", "$args.card", "[redacted]"),
        ("$args.card.number", "4111", "$args.card", "[redacted]"),
        ("$args.card", {"number": "4111", "x": 1}, "$args.card.number", {"number": "[redacted]", "x": 1}),
        ("$args.cards", [{"n": 1}, {"n": 2}], "$args.cards[1].n", [{"n": 1}, {"n": "[redacted]"}]),
        ("$args.card", {"x": 1}, "$args.card.number", {"x": 1}),
        ("$args.cards", [1], "$args.cards[3]", [1]),
        ("$args.card", "4111", "$args.card.number", "4111"),
        ("$args.card", "4111", "$result.card", "4111"),
        ("$args.card", "4111", "$args.cardholder", "4111"),
        ("$args.login.password", "x", "$args.other", "[redacted]"),
    ],
)
def test_redacting(reference: str, value: Any, path: str, shown: Any) -> None:
    assert show(reference, value, path) == shown


def test_redacting_leaves_missing_values_missing() -> None:
    find = redacting(lambda _: MISSING, [])

    assert find(parse_reference("$args.x", spelling=Spelling.FLAT)) == MISSING
