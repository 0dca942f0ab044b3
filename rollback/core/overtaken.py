"""What an earlier step's undo means for a later one on the same things (D22, D23).

Undoing goes newest first, so a later step is normally undone, and read back, before an earlier one. Where that did
not happen, its undo or its read-back comes too late. A read-back would look for a state that was itself undone since;
and an undo that puts a state back would bring the earlier step's effect back with it. So the first is not judged, and
the second is not sent. What the earlier step's own read-back confirmed, though, vouches for everything beneath it: the
things are as they were before either call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ledger.core.statuses import ReadBack, StepState
from rollback.core.steps import PlanStep
from rollback.core.touching import SharingIndex, is_restoring, touch_of


class UndoneSoFar:
    """The undone steps among those noted, oldest first, found again by what a later step shares with them."""

    def __init__(self) -> None:
        self._undone = SharingIndex()
        self._vouched: set[str] = set()

    @classmethod
    def before(cls, steps: Iterable[PlanStep], number: int) -> UndoneSoFar:
        """Note the steps (oldest first) that stand before this one."""
        undone = cls()
        for step in steps:
            if step.number < number:
                undone.note(step, is_confirmed=step.record.read_back is ReadBack.VERIFIED)
        return undone

    def note(self, step: PlanStep, *, is_confirmed: bool) -> None:
        """Note the next step; one that is not undone counts for nothing."""
        if step.record.state is not StepState.COMPENSATED:
            return
        touch = touch_of(step)
        self._undone.add(step.number, touch)
        if is_confirmed and _puts_a_state_back(step):
            self._vouched.update(touch.names)

    def have_overtaken(self, step: PlanStep) -> bool:
        """Whether an earlier step on the same things is undone already."""
        return _puts_a_state_back(step) and bool(self._undone.find(touch_of(step)))

    def vouch_for(self, step: PlanStep) -> bool:
        """Whether confirmed undos of earlier steps cover everything that the step touched."""
        touch = touch_of(step)
        is_named = bool(touch.names) and not touch.is_whole
        return is_named and all(not self._vouched.isdisjoint(_along(name)) for name in touch.names)


def _puts_a_state_back(step: PlanStep) -> bool:
    return step.manifest is not None and step.distrust is None and is_restoring(step.manifest)


def _along(name: str) -> Iterator[str]:
    """Yield the name and everything it lies in."""
    parts = name.split("/")
    for length in range(1, len(parts) + 1):
        yield "/".join(parts[:length])
