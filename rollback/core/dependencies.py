"""Which steps must go first: the walk over a run that planning, executing and reporting share (D22).

A step is undone only after every later step that was built on it is gone: one that names it in `depends_on`, one
whose manifest `requires` it, or, where its undo restores a state, one that shares a touched name. The walk goes
newest first and is told of each step whether it still stands; it is linear in steps, names and dependencies. It
names the nearest blockers, not all behind them: the reason of each is its own line.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from rollback.core.steps import PlanStep
from rollback.core.touching import SharingIndex, is_restoring, touch_of


def _restores(step: PlanStep) -> bool:
    return step.manifest is not None and step.distrust is None and is_restoring(step.manifest)


class Blockers:
    """What blocks the undo of the steps still to come, newest first."""

    def __init__(self) -> None:
        self._by_dependency: dict[int, set[int]] = {}
        self._sharing = SharingIndex()

    def of(self, step: PlanStep) -> tuple[int, ...]:
        """Return the later steps that must go before this one, oldest first."""
        found = set(self._by_dependency.get(step.number, ()))
        if _restores(step):
            found |= self._sharing.find(touch_of(step))
        return tuple(sorted(found))

    def stands(self, step: PlanStep) -> None:
        """Note that the step stays in the world, and so keeps what it was built on."""
        for earlier in step.dependencies:
            self._by_dependency.setdefault(earlier, set()).add(step.number)
        self._sharing.add(step.number, touch_of(step))

    def passes(self, step: PlanStep) -> None:
        """Note that the step itself is no obstacle; whatever was built on it still needs what is beneath."""
        waiting = self._by_dependency.get(step.number)
        for earlier in step.dependencies if waiting else ():
            # One of them is enough to hold what is beneath, and keeps the walk linear.
            self._by_dependency.setdefault(earlier, set()).add(min(waiting or ()))


def close_selection(
    steps: Sequence[PlanStep], chosen: Collection[int], needs_undo: Mapping[int, bool]
) -> frozenset[int]:
    """Return the chosen steps and everything that must go first, walking oldest to newest."""
    sharing, included = SharingIndex(), set(chosen)
    built_on: set[int] = set()
    for step in steps:
        number, is_built_on = step.number, not built_on.isdisjoint(step.dependencies)
        if is_built_on:
            built_on.add(number)
        if not needs_undo[number]:
            continue
        if is_built_on or number in included or sharing.find(touch_of(step)):
            included.add(number)
            built_on.add(number)
            if _restores(step):
                sharing.add(number, touch_of(step))
    return frozenset(included)
