"""Where a step can stand and how it moves: the transition table as data (D13).

Every change of a step's state is one of the `Move`s. The table names the states a move may start from, and those it
may start from only while the step is disputed; anything else is an illegal transition. It is total: `may_move` answers
for every pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class StepState(StrEnum):
    """Where a step stands."""

    INTENDED = "intended"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNCERTAIN = "uncertain"
    COMPENSATING = "compensating"
    COMPENSATED = "compensated"
    COMPENSATION_FAILED = "compensation_failed"


class RunState(StrEnum):
    """Whether a run still takes calls."""

    OPEN = "open"
    CLOSED = "closed"


class Mode(StrEnum):
    """Whether violations block a call or are only recorded."""

    ENFORCE = "enforce"
    OBSERVE = "observe"


class SettledBy(StrEnum):
    """Who said how a call ended; decides what a later, different word may do (D13)."""

    CALLER = "caller"
    SWEEP = "sweep"
    PERSON = "person"
    LOOKUP = "lookup"


class ReadBack(StrEnum):
    """What is known of a compensated step's declared read-back (D23)."""

    NOT_DECLARED = "not_declared"
    VERIFIED = "verified"
    UNVERIFIED = "unverified"


class Move(StrEnum):
    """The ways in which a step's state changes."""

    SUCCEED = "succeed"
    FAIL = "fail"
    LOSE = "lose"
    BEGIN_COMPENSATION = "begin_compensation"
    TAKE_OVER = "take_over"
    COMPENSATE = "compensate"
    FAIL_COMPENSATION = "fail_compensation"
    REVOKE_COMPENSATION = "revoke_compensation"
    COMPENSATE_BY_HAND = "compensate_by_hand"
    DENY_COMPENSATION = "deny_compensation"
    RESOLVE_SUCCEEDED = "resolve_succeeded"
    RESOLVE_FAILED = "resolve_failed"
    OVERRULE_SUCCEEDED = "overrule_succeeded"
    OVERRULE_FAILED = "overrule_failed"
    CONFIRM_COMPENSATION = "confirm_compensation"


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table: from where, to where, and the event that tells it.

    `disputed` are the states from which only a disputed step may make the move.
    """

    sources: frozenset[StepState]
    target: StepState
    event: str
    disputed: frozenset[StepState] = frozenset()


_S = StepState
UNRESOLVED = frozenset({_S.INTENDED, _S.UNCERTAIN})
STANDING = frozenset({_S.INTENDED, _S.SUCCEEDED, _S.UNCERTAIN, _S.COMPENSATING, _S.COMPENSATION_FAILED})
SETTLED = frozenset({_S.SUCCEEDED, _S.FAILED})
_NOWHERE: frozenset[StepState] = frozenset()
_ANSWERED_UNDOS = frozenset({_S.COMPENSATED, _S.COMPENSATION_FAILED})

RULES: Mapping[Move, Rule] = {
    Move.SUCCEED: Rule(UNRESOLVED, _S.SUCCEEDED, "succeeded"),
    Move.FAIL: Rule(UNRESOLVED, _S.FAILED, "failed"),
    Move.LOSE: Rule(frozenset({_S.INTENDED}), _S.UNCERTAIN, "uncertain"),
    Move.BEGIN_COMPENSATION: Rule(frozenset({_S.SUCCEEDED, _S.COMPENSATION_FAILED}), _S.COMPENSATING, "compensating"),
    Move.TAKE_OVER: Rule(frozenset({_S.COMPENSATING}), _S.COMPENSATING, "compensating"),
    Move.COMPENSATE: Rule(frozenset({_S.COMPENSATING}), _S.COMPENSATED, "compensated"),
    Move.FAIL_COMPENSATION: Rule(frozenset({_S.COMPENSATING}), _S.COMPENSATION_FAILED, "compensation_failed"),
    # A read-back made later (D23) may show that an undo taken for done never happened.
    Move.REVOKE_COMPENSATION: Rule(frozenset({_S.COMPENSATED}), _S.COMPENSATION_FAILED, "compensation_failed"),
    Move.COMPENSATE_BY_HAND: Rule(
        frozenset({_S.COMPENSATING, _S.COMPENSATION_FAILED, _S.SUCCEEDED}), _S.COMPENSATED, "by_hand"
    ),
    Move.DENY_COMPENSATION: Rule(frozenset({_S.COMPENSATION_FAILED}), _S.SUCCEEDED, "resolved_succeeded"),
    Move.RESOLVE_SUCCEEDED: Rule(UNRESOLVED, _S.SUCCEEDED, "resolved_succeeded"),
    Move.RESOLVE_FAILED: Rule(UNRESOLVED, _S.FAILED, "resolved_failed"),
    # A person settles again what two parties contradicted each other about.
    Move.OVERRULE_SUCCEEDED: Rule(_NOWHERE, _S.SUCCEEDED, "resolved_succeeded", disputed=SETTLED),
    Move.OVERRULE_FAILED: Rule(_NOWHERE, _S.FAILED, "resolved_failed", disputed=SETTLED | _ANSWERED_UNDOS),
    Move.CONFIRM_COMPENSATION: Rule(
        _NOWHERE, _S.COMPENSATED, "resolved_compensated", disputed=frozenset({_S.COMPENSATED})
    ),
}


# The events that may write an undo handle; the latest that carries its digest binds (D14).
HANDLE_EVENTS = frozenset({"intended", "succeeded", "failed", "uncertain", "resolved_succeeded"})


def may_move(state: StepState, move: Move, *, is_disputed: bool = False) -> bool:
    """Tell whether a step in `state` may make `move`."""
    rule = RULES[move]
    return state in rule.sources or (is_disputed and state in rule.disputed)


def is_standing(state: StepState, *, is_disputed: bool = False) -> bool:
    """Tell whether the call's effect is, or may be, in the world."""
    return state in STANDING or (is_disputed and state is StepState.FAILED)


def outcome_of(state: StepState) -> StepState | None:
    """Return the call's outcome that `state` implies, or None while it is unknown."""
    match state:
        case StepState.INTENDED | StepState.UNCERTAIN:
            return None
        case StepState.FAILED:
            return StepState.FAILED
        case _:
            return StepState.SUCCEEDED
