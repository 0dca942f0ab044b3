"""Events are the truth: folding a run's journal gives how every step stands, whatever the rows say.

A row that says otherwise was changed past the journal, and nothing may be concluded from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ledger.core.statuses import RULES, Move, ReadBack, StepState

_TARGETS: Mapping[str, StepState] = {
    "intended": StepState.INTENDED,
    **{rule.event: rule.target for rule in RULES.values()},
}
# A fresh undo is unchecked until the next event says more; confirming one says nothing about its check.
_UNDOES = frozenset({RULES[move].event for move in (Move.COMPENSATE, Move.COMPENSATE_BY_HAND)})
_READ_BACKS: Mapping[str, ReadBack] = {"verified": ReadBack.VERIFIED, "unverified": ReadBack.UNVERIFIED}
_ENDS_OF_DISPUTES = frozenset({"resolved_succeeded", "resolved_failed", "resolved_compensated", "by_hand"})
FOLDED_KINDS = frozenset({*_TARGETS, *_READ_BACKS, "disputed"})


@dataclass(frozen=True, slots=True)
class Standing:
    """How a step stands, as far as what a rollback may claim hangs on it; `read_back` counts where it is undone."""

    state: StepState
    read_back: ReadBack = ReadBack.NOT_DECLARED
    is_disputed: bool = False


def fold_steps(events: Iterable[tuple[str, int | None]]) -> Mapping[int, Standing]:
    """Return how each step stands by the run's events, given in order as (kind, step)."""
    steps: dict[int, Standing] = {}
    for kind, step in events:
        if step is not None and kind in FOLDED_KINDS:
            steps[step] = _after(kind, steps.get(step, Standing(StepState.INTENDED)))
    return steps


def _after(kind: str, standing: Standing) -> Standing:
    is_disputed = kind == "disputed" or (standing.is_disputed and kind not in _ENDS_OF_DISPUTES)
    unchecked = ReadBack.NOT_DECLARED if kind in _UNDOES else standing.read_back
    return replace(
        standing,
        state=_TARGETS.get(kind, standing.state),
        read_back=_READ_BACKS.get(kind, unchecked),
        is_disputed=is_disputed,
    )


def fold_states(events: Iterable[tuple[str, int | None]]) -> Mapping[int, StepState]:
    """Return each step's state from the run's events, given in order as (kind, step)."""
    return {number: standing.state for number, standing in fold_steps(events).items()}


def contradictions(told: Mapping[int, Standing], rows: Mapping[int, Standing]) -> Mapping[int, str]:
    """Say of each step whose row contradicts what its events tell in what it does, in the order of their numbers."""
    found = {number: _contradiction(told.get(number), rows.get(number)) for number in sorted({*told, *rows})}
    return {number: words for number, words in found.items() if words is not None}


def _contradiction(told: Standing | None, row: Standing | None) -> str | None:
    if told is None:
        return "it has a row and no events"
    if row is None:
        return f"it has no row, its events say {told.state}"
    if row.state is not told.state:
        return f"the row says {row.state}, its events say {told.state}"
    if row.is_disputed is not told.is_disputed:
        return f"the row says {_dispute(row)}, its events say {_dispute(told)}"
    if row.state is StepState.COMPENSATED and row.read_back is not told.read_back:
        return f"the row says {_words(row.read_back)}, its events say {_words(told.read_back)}"
    return None


def _dispute(standing: Standing) -> str:
    return "disputed" if standing.is_disputed else "not disputed"


def _words(read_back: ReadBack) -> str:
    return "no read-back" if read_back is ReadBack.NOT_DECLARED else read_back.value
