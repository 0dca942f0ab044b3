"""The key of an undo: the same on every retry, never that of another pair (D21)."""

from __future__ import annotations

import pytest

from rollback.core.keys import compensation_key, generation_of, pair_digest
from tests.rollback.factories import digest, make_attempt

FIRST = "e5ecbb51d5597b6dfb2e2914a0921be1efca3ef93919a06466d0f3d777a343b3"


def test_compensation_key_is_the_documented_one() -> None:
    assert compensation_key(run_id="run_v", step=0, tool="stripe.create_charge", generation=0) == FIRST


@pytest.mark.parametrize(
    "changed",
    [{"run_id": "run_w"}, {"step": 1}, {"tool": "stripe.refund"}, {"generation": 1}],
    ids=lambda changed: next(iter(changed)),
)
def test_compensation_key_differs_with_each_part(changed: dict[str, object]) -> None:
    parts = {"run_id": "run_v", "step": 0, "tool": "stripe.create_charge", "generation": 0, **changed}

    assert compensation_key(**parts) != FIRST  # type: ignore[arg-type]


def test_compensation_key_writes_names_unescaped() -> None:
    spelled = compensation_key(run_id="run_v", step=0, tool="küche.öffnen", generation=0)

    assert spelled == "5e706e32b66bc9ac954e44743e6b3399d817b623120abf74388f8912838cecaf"


def test_pair_digest_ignores_the_order_of_arguments() -> None:
    assert pair_digest("t", {"a": 1, "b": 2}, digest) == pair_digest("t", {"b": 2, "a": 1}, digest)


@pytest.mark.parametrize(
    ("tool", "arguments"), [("u", {"a": 1}), ("t", {"a": 2}), ("t", {"a": True}), ("t", {"a": 2**60})]
)
def test_pair_digest_tells_other_pairs_apart(tool: str, arguments: dict[str, object]) -> None:
    assert pair_digest(tool, arguments, digest) != pair_digest("t", {"a": 1}, digest)


def test_generation_counts_the_distinct_pairs_sent_before() -> None:
    sent = [make_attempt(pair="one"), make_attempt(pair="one"), make_attempt(pair="two", generation=1)]

    assert generation_of("three", sent) == 2


def test_generation_of_a_pair_sent_before_stays() -> None:
    sent = [make_attempt(pair="one"), make_attempt(pair="two", generation=1)]

    assert (generation_of("one", sent), generation_of("two", sent)) == (0, 1)


def test_generation_of_the_first_pair_is_zero() -> None:
    assert generation_of("one", []) == 0
