"""In which ways a person may settle a step: the moves of the transition table, and what the plan says of by-hand undos.

The operations decide again, under the run's lock; this is what they decide by.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ledger.core.statuses import Move, StepState, may_move
from ledger.core.values import StepRecord
from rollback.core.actions import Kind

_UNPLANNED = (Kind.UNRECOVERABLE, Kind.UNMANIFESTED)


@dataclass(frozen=True, slots=True)
class Settling:
    """One way to settle: the status, what it says, and whether the call's result may come with it."""

    status: StepState
    label: str
    help: str
    takes_result: bool = False


HAPPENED = Settling(
    StepState.SUCCEEDED,
    "The call took effect",
    "You looked at the downstream system and found what the call did. Give the result that the call returned, so that"
    " it can be undone.",
    takes_result=True,
)
NOT_HAPPENED = Settling(
    StepState.FAILED, "The call did not take effect", "You looked and nothing is there: nothing needs to be undone."
)
NOT_UNDONE = Settling(
    StepState.SUCCEEDED,
    "The undo did not happen",
    "The effect of the call is still there: the next rollback tries again. A corrected result may come with it.",
    takes_result=True,
)
UNDONE = Settling(
    StepState.COMPENSATED,
    "It is undone",
    "You undid it outside of Reversi, or found it undone. A declared read-back is made where something can make it, and"
    " a mismatch is refused.",
)


def ways_to_settle(step: StepRecord, kind: Kind) -> tuple[Settling, ...]:
    """Return the ways in which a person may settle the step, given what the plan says about it."""
    return tuple(_ways(step, kind))


def _ways(step: StepRecord, kind: Kind) -> Iterator[Settling]:
    state = step.state

    def may(*moves: Move) -> bool:
        return any(may_move(state, move, is_disputed=step.is_disputed) for move in moves)

    if may(Move.RESOLVE_SUCCEEDED, Move.OVERRULE_SUCCEEDED):
        yield HAPPENED
    if may(Move.RESOLVE_FAILED, Move.OVERRULE_FAILED):
        yield NOT_HAPPENED
    if may(Move.DENY_COMPENSATION):
        yield NOT_UNDONE
    if may(Move.CONFIRM_COMPENSATION) or (
        may(Move.COMPENSATE_BY_HAND) and (state is not StepState.SUCCEEDED or kind in _UNPLANNED)
    ):
        yield UNDONE
