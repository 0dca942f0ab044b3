"""Which steps of a run an operator wants undone, and what must go with them (D22)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollback.core.dependencies import close_selection
from rollback.core.errors import SelectionInvalid
from rollback.core.steps import PlanStep


@dataclass(frozen=True, slots=True)
class Selection:
    """Chosen steps by number, or everything after `to_step`, which itself stays."""

    steps: tuple[int, ...] | None = None
    to_step: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the selection as a job keeps it."""
        return {"steps": None if self.steps is None else list(self.steps), "to_step": self.to_step}

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Selection | None:
        """Read a selection back."""
        if data is None:
            return None
        steps = data["steps"]
        return cls(steps=None if steps is None else tuple(steps), to_step=data["to_step"])


@dataclass(frozen=True, slots=True)
class Selected:
    """A selection applied to a run: what was asked for, and what must go first."""

    wanted: Selection
    steps: tuple[int, ...]
    added: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the selection as plans and reports name it; `added` are the steps nobody asked for."""
        return {**self.wanted.to_json(), "selected": list(self.steps), "added": list(self.added)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Selected:
        """Read it back from a report."""
        wanted = Selection.from_json(data)
        return cls(wanted or Selection(), tuple(data["selected"]), tuple(data["added"]))


def choose_steps(selection: Selection, count: int) -> frozenset[int]:
    """Return the numbers that are asked for among `count` steps; raises SelectionInvalid."""
    if (selection.steps is None) == (selection.to_step is None):
        raise SelectionInvalid("choose steps by their numbers, or everything after one step: not both")
    if selection.to_step is not None:
        _require_known([selection.to_step], count)
        return frozenset(range(selection.to_step + 1, count))
    chosen = selection.steps or ()
    if not chosen:
        raise SelectionInvalid("no step is chosen")
    _require_known(chosen, count)
    return frozenset(chosen)


def _require_known(numbers: Collection[int], count: int) -> None:
    unknown = sorted(number for number in numbers if not 0 <= number < count)
    if unknown:
        raise SelectionInvalid(f"the run has no step {unknown[0]}: it has {count}, numbered from 0")


def select(
    steps: Sequence[PlanStep],
    selection: Selection,
    needs_undo: Mapping[int, bool],
    taken: frozenset[int] = frozenset(),
) -> Selected:
    """Return the chosen steps plus everything that must go first; `steps` are oldest first.

    `taken` are steps that a rollback already took along, which need not be in the way any more.
    """
    chosen = choose_steps(selection, len(steps))
    closed = close_selection(steps, chosen | taken, needs_undo)
    return Selected(selection, tuple(sorted(closed)), tuple(sorted(closed - chosen)))
