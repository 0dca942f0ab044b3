"""How the answer of a declared read is looked at (D108)."""

from typing import Any

import pytest

from reversi_sdk.answers import narrowed, unordered
from reversi_sdk.references import Found

A, B = {"from": "a", "to": "b"}, {"from": "b", "to": "a"}

NARROWED: dict[str, tuple[Any, dict[str, Any], Any]] = {
    "nothing to narrow": ([1], {}, Found([1])),
    "listed items stay": ({"l": [A, B], "m": [1]}, {"l": [B]}, Found({"l": [B], "m": [1]})),
    "repeated items stay repeated": ({"l": [1, 1, 2]}, {"l": [1]}, Found({"l": [1, 1]})),
    "members beside an item's own do not count": ({"l": [A]}, {"l": [A | {"note": 1}]}, Found({"l": [A]})),
    "a missing member counts": ({"l": [A | {"note": 1}]}, {"l": [A]}, Found({"l": []})),
    "another kind is another thing": ({"l": [1, "1", True]}, {"l": ["1"]}, Found({"l": ["1"]})),
    "deep inside": ({"a": [{"l": [1, 2]}, {"l": [2]}]}, {"a.0.l": [1]}, Found({"a": [{"l": [1]}, {"l": [2]}]})),
    "no list there": ({"l": {}}, {"l": []}, "`l` of the answer is no list"),
    "nothing there": ({}, {"l": []}, "`l` of the answer is no list"),
    "compared with no list": ({"l": []}, {"l": "a"}, "`l` cannot be narrowed: what it is compared with is no list"),
}


@pytest.mark.parametrize("case", NARROWED)
def test_narrowed(case: str) -> None:
    answer, among, expected = NARROWED[case]

    assert narrowed(answer, among) == expected


def test_narrowed_leaves_the_answer_as_it_was() -> None:
    answer = {"l": [1, 2]}

    narrowed(answer, {"l": [1]})

    assert answer == {"l": [1, 2]}


def test_unordered_ignores_the_order_of_lists_at_every_depth() -> None:
    one = {"l": [{"o": ["x", "y"]}, {"o": []}], "n": 1}
    other = {"n": 1, "l": [{"o": []}, {"o": ["y", "x"]}]}

    assert unordered(one) == unordered(other)


@pytest.mark.parametrize("other", [[1, 2], [1, 1, 2, 2], [1, 1, "2"], {"0": 1}])
def test_unordered_tells_multisets_apart(other: Any) -> None:
    assert unordered([1, 2, 1]) != unordered(other)


def test_unordered_bears_any_depth() -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]

    assert unordered(deep) is not None
