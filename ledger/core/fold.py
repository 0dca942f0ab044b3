"""Events are the truth: folding a run's journal gives the state of every step, whatever the rows say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ledger.core.statuses import RULES, StepState

_TARGETS: Mapping[str, StepState] = {
    "intended": StepState.INTENDED,
    **{rule.event: rule.target for rule in RULES.values()},
}


def fold_states(events: Iterable[tuple[str, int | None]]) -> Mapping[int, StepState]:
    """Return each step's state from the run's events, given in order as (kind, step)."""
    states: dict[int, StepState] = {}
    for kind, step in events:
        if step is not None and kind in _TARGETS:
            states[step] = _TARGETS[kind]
    return states
