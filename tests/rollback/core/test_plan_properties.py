"""Plans of random runs against a slow and obvious reading of the rules, and the cost of a plan (D22)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ledger.core.statuses import StepState
from rollback.core.actions import Kind
from rollback.core.plan import Plan
from rollback.core.selection import Selection
from rollback.core.steps import PlanStep
from rollback.core.touching import Touch, is_restoring, touch_of
from tests.rollback.factories import kinds, make_manifest, make_step, plan_of, report_of, undoable, writing

MANIFESTS: Sequence[Any] = (
    writing(),
    undoable(tool="file.index"),
    undoable(tool="shop.order"),
    make_manifest(tool="file.tag"),
    make_manifest(tool="file.get", effect="read_only"),
    make_manifest(tool="file.send", effect="irreversible"),
    None,
)
STATES = (StepState.SUCCEEDED, StepState.SUCCEEDED, StepState.UNCERTAIN, StepState.FAILED, StepState.COMPENSATED)
NAMES = ("file:a", "file:a/b", "file:a/b/c", "file:ab", "file:d")


@st.composite
def runs(draw: st.DrawFn) -> list[PlanStep]:
    steps = []
    for number in range(draw(st.integers(0, 12))):
        earlier = st.lists(st.integers(0, number - 1), max_size=2, unique=True) if number else st.just([])
        manifest = draw(st.sampled_from(MANIFESTS))
        steps.append(
            make_step(
                number=number,
                manifest=manifest,
                state=draw(st.sampled_from(STATES)),
                depends_on=tuple(draw(earlier)),
                requires_steps=tuple(draw(earlier)),
                touches=draw(st.none() | st.lists(st.sampled_from(NAMES), max_size=2).map(tuple)),
                tool="file.other" if manifest is None else manifest.tool,
            )
        )
    return steps


def names_meet(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")


def touches_meet(one: Touch, other: Touch) -> bool:
    if one.upstream == other.upstream and (one.is_whole or other.is_whole):
        return True
    return any(names_meet(a, b) for a in one.names for b in other.names)


def is_built_on(later: PlanStep, earlier: PlanStep, steps: Sequence[PlanStep]) -> bool:
    reached, frontier = set(), set(later.dependencies)
    while frontier:
        reached |= frontier
        frontier = {n for number in frontier for n in steps[number].dependencies} - reached
    return earlier.number in reached


def holds(later: PlanStep, earlier: PlanStep, steps: Sequence[PlanStep]) -> bool:
    restores = earlier.manifest is not None and is_restoring(earlier.manifest)
    is_shared = restores and touches_meet(touch_of(earlier), touch_of(later))
    return is_shared or is_built_on(later, earlier, steps)


def is_overtaken(step: PlanStep, steps: Sequence[PlanStep]) -> bool:
    restores = step.manifest is not None and is_restoring(step.manifest)
    undone = [earlier for earlier in steps[: step.number] if earlier.record.state is StepState.COMPENSATED]
    return restores and any(touches_meet(touch_of(earlier), touch_of(step)) for earlier in undone)


def kinds_alone(steps: Sequence[PlanStep]) -> dict[int, str]:
    alone = {step.number: kinds(plan_of(step))[step.number] for step in steps}
    late = {s.number: "unrecoverable" for s in steps if alone[s.number] == "compensate" and is_overtaken(s, steps)}
    return alone | late


def slow_kinds(steps: Sequence[PlanStep]) -> dict[int, str]:
    alone = kinds_alone(steps)
    for step in reversed(steps):
        stand = [later for later in steps[step.number + 1 :] if alone[later.number] not in ("compensate", "skip")]
        if alone[step.number] == "compensate" and any(holds(later, step, steps) for later in stand):
            alone[step.number] = "defer"
    return alone


@given(runs())
def test_a_plan_is_what_the_slow_reading_says(steps: list[PlanStep]) -> None:
    assert kinds(plan_of(*steps)) == slow_kinds(steps)


@given(runs())
def test_what_blocks_is_later_stands_and_holds(steps: list[PlanStep]) -> None:
    plan = plan_of(*steps)
    found = kinds(plan)

    for action in plan.actions:
        for number in action.blocked_by:
            assert number > action.step
            assert found[number] not in ("compensate", "skip")
            assert holds(steps[number], steps[action.step], steps)


@given(runs(), st.data())
def test_a_selection_takes_along_what_must_go_first_and_nothing_else(
    steps: list[PlanStep], data: st.DataObject
) -> None:
    if not steps:
        return
    chosen = data.draw(st.sets(st.integers(0, len(steps) - 1), min_size=1))
    alone = kinds_alone(steps)

    plan = plan_of(*steps, selection=Selection(steps=tuple(chosen)))

    assert plan.selection is not None
    assert set(plan.selection.steps) == slow_closure(steps, chosen, alone)
    assert {action.step for action in plan.actions} == set(plan.selection.steps)
    assert set(plan.selection.added) == set(plan.selection.steps) - chosen


def slow_closure(steps: Sequence[PlanStep], chosen: set[int], alone: dict[int, str]) -> set[int]:
    closed, seen = set(chosen), -1
    while len(closed) != seen:
        seen = len(closed)
        for step in steps:
            beneath = [steps[n] for n in closed if n < step.number and alone[n] != "skip"]
            if alone[step.number] != "skip" and any(holds(step, earlier, steps) for earlier in beneath):
                closed.add(step.number)
    return closed


@given(runs(), st.data())
def test_a_selection_never_waits_for_a_step_outside_it(steps: list[PlanStep], data: st.DataObject) -> None:
    if not steps:
        return
    chosen = data.draw(st.sets(st.integers(0, len(steps) - 1), min_size=1))

    plan = plan_of(*steps, selection=Selection(steps=tuple(chosen)))

    selected = {action.step for action in plan.actions}
    assert {number for action in plan.actions for number in action.blocked_by} <= selected


@given(runs())
def test_a_report_is_complete_only_without_any_trouble(steps: list[PlanStep]) -> None:
    report = report_of(*steps)
    data = report.to_json()
    troubles = (
        "failed",
        "unrecoverable",
        "unresolved",
        "unmanifested",
        "deferred",
        "awaiting_approval",
        "unverified",
    )

    assert data["complete"] == (not any(data[name] for name in troubles))
    assert sorted(entry.step for entry in report.entries) == [step.number for step in steps]


def calls_of(steps: Sequence[PlanStep]) -> tuple[int, Plan]:
    """Plan the steps and count the calls of functions that took, which no other load on the machine changes."""
    count = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += 1

    sys.setprofile(note)
    try:
        plan = plan_of(*steps)
    finally:
        sys.setprofile(None)
    return count, plan


def long_run(length: int) -> list[PlanStep]:
    """Every step writes one of ten files, needs the one before, and the newest cannot be undone."""
    steps = [
        make_step(
            number=number,
            manifest=writing(),
            depends_on=(number - 1,) if number else (),
            touches=(f"file:dir/{number % 10}",) if number % 7 else None,
        )
        for number in range(length)
    ]
    return [*steps, make_step(number=length, manifest=None, tool="file.other")]


def test_a_plan_grows_in_line_with_its_run() -> None:
    short, _ = calls_of(long_run(1_000))
    long, plan = calls_of(long_run(10_000))

    assert long <= 10.5 * short
    assert sum(action.kind is Kind.DEFER for action in plan.actions) == 10_000
