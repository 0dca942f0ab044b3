"""Choosing steps: what may be asked for, and what is said about it (D22)."""

from __future__ import annotations

import pytest

from rollback.core.errors import SelectionInvalid
from rollback.core.selection import Selected, Selection
from rollback.core.text import plan_lines
from tests.rollback.factories import kinds, make_manifest, make_step, plan_of, undoable

ORDER = undoable()
RUN = [
    make_step(manifest=ORDER),
    make_step(number=1, manifest=ORDER, depends_on=(0,)),
    make_step(number=2, manifest=ORDER),
    make_step(number=3, manifest=make_manifest(tool="shop.tag"), depends_on=(2,)),
    make_step(number=4, manifest=ORDER, depends_on=(3,)),
]


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(steps=(0,)), [1, 0]),
        (Selection(steps=(1,)), [1]),
        (Selection(steps=(2,)), [4, 2]),
        (Selection(steps=(3,)), [3]),
        (Selection(to_step=2), [4, 3]),
        (Selection(to_step=4), []),
    ],
    ids=[
        "with what stands on it",
        "alone",
        "through a step that stays",
        "a step that stays",
        "to a step",
        "to the last",
    ],
)
def test_selection_takes_along_what_must_go_first(selection: Selection, expected: list[int]) -> None:
    assert [action.step for action in plan_of(*RUN, selection=selection).actions] == expected


@pytest.mark.parametrize(
    "selection",
    [
        Selection(steps=(7,)),
        Selection(steps=(-1,)),
        Selection(steps=()),
        Selection(to_step=5),
        Selection(to_step=-1),
        Selection(),
        Selection(steps=(1,), to_step=1),
    ],
    ids=["too high", "negative", "empty", "to too high", "to negative", "neither", "both"],
)
def test_selection_that_does_not_fit_is_refused(selection: Selection) -> None:
    with pytest.raises(SelectionInvalid):
        plan_of(*RUN, selection=selection)


def test_selection_is_said_in_the_plan() -> None:
    plan = plan_of(*RUN, selection=Selection(steps=(0,)))

    assert plan.to_json()["selection"] == {"steps": [0], "to_step": None, "selected": [0, 1], "added": [1]}
    assert plan_lines(plan)[0] == "  only step 0, with 1, which must go first"


def test_selection_decides_whether_the_plan_is_reversible() -> None:
    run = [*RUN, make_step(number=5, manifest=None)]

    assert not plan_of(*run).fully_reversible
    assert plan_of(*run, selection=Selection(steps=(0,))).fully_reversible


def test_selection_shows_what_blocks_within_it() -> None:
    run = [*RUN, make_step(number=5, manifest=None, depends_on=(0,))]

    assert kinds(plan_of(*run, selection=Selection(steps=(0,)))) == {5: "unmanifested", 1: "compensate", 0: "defer"}


@pytest.mark.parametrize("selection", [Selection(steps=(0, 3)), Selection(to_step=2)])
def test_selection_survives_json(selection: Selection) -> None:
    selected = plan_of(*RUN, selection=selection).selection

    assert selected is not None
    assert Selection.from_json(selection.to_json()) == selection
    assert Selected.from_json(selected.to_json()) == selected
