import itertools

import pytest

from ledger.core.errors import IllegalTransition
from ledger.core.fold import Standing, contradictions, fold_states, fold_steps
from ledger.core.statuses import RULES, Move, ReadBack, StepState, is_standing, may_move, outcome_of

S = StepState
ALLOWED = {
    (S.INTENDED, Move.SUCCEED): S.SUCCEEDED,
    (S.UNCERTAIN, Move.SUCCEED): S.SUCCEEDED,
    (S.INTENDED, Move.FAIL): S.FAILED,
    (S.UNCERTAIN, Move.FAIL): S.FAILED,
    (S.INTENDED, Move.LOSE): S.UNCERTAIN,
    (S.SUCCEEDED, Move.BEGIN_COMPENSATION): S.COMPENSATING,
    (S.COMPENSATION_FAILED, Move.BEGIN_COMPENSATION): S.COMPENSATING,
    (S.COMPENSATING, Move.TAKE_OVER): S.COMPENSATING,
    (S.COMPENSATING, Move.COMPENSATE): S.COMPENSATED,
    (S.COMPENSATING, Move.FAIL_COMPENSATION): S.COMPENSATION_FAILED,
    (S.COMPENSATED, Move.REVOKE_COMPENSATION): S.COMPENSATION_FAILED,
    (S.COMPENSATING, Move.COMPENSATE_BY_HAND): S.COMPENSATED,
    (S.COMPENSATION_FAILED, Move.COMPENSATE_BY_HAND): S.COMPENSATED,
    (S.SUCCEEDED, Move.COMPENSATE_BY_HAND): S.COMPENSATED,
    (S.COMPENSATION_FAILED, Move.DENY_COMPENSATION): S.SUCCEEDED,
    (S.INTENDED, Move.RESOLVE_SUCCEEDED): S.SUCCEEDED,
    (S.UNCERTAIN, Move.RESOLVE_SUCCEEDED): S.SUCCEEDED,
    (S.INTENDED, Move.RESOLVE_FAILED): S.FAILED,
    (S.UNCERTAIN, Move.RESOLVE_FAILED): S.FAILED,
}
ALLOWED_IF_DISPUTED = {
    (S.SUCCEEDED, Move.OVERRULE_SUCCEEDED): S.SUCCEEDED,
    (S.FAILED, Move.OVERRULE_SUCCEEDED): S.SUCCEEDED,
    (S.SUCCEEDED, Move.OVERRULE_FAILED): S.FAILED,
    (S.FAILED, Move.OVERRULE_FAILED): S.FAILED,
    (S.COMPENSATED, Move.OVERRULE_FAILED): S.FAILED,
    (S.COMPENSATION_FAILED, Move.OVERRULE_FAILED): S.FAILED,
    (S.COMPENSATED, Move.CONFIRM_COMPENSATION): S.COMPENSATED,
}
# While an undo is under way its executor has the next word; a dead one leaves it to the next (D23).
UNDER_WAY = S.COMPENSATING
WORDS = frozenset(
    {
        Move.OVERRULE_SUCCEEDED,
        Move.OVERRULE_FAILED,
        Move.CONFIRM_COMPENSATION,
        Move.COMPENSATE_BY_HAND,
        Move.DENY_COMPENSATION,
    }
)


@pytest.mark.parametrize("is_disputed", [False, True])
@pytest.mark.parametrize(("state", "move"), list(itertools.product(StepState, Move)))
def test_table_allows_exactly_the_documented_moves(state: StepState, move: Move, is_disputed: bool) -> None:
    allowed = {**ALLOWED, **ALLOWED_IF_DISPUTED} if is_disputed else ALLOWED
    assert may_move(state, move, is_disputed=is_disputed) is ((state, move) in allowed)
    if (state, move) in allowed:
        assert RULES[move].target is allowed[state, move]


@pytest.mark.parametrize("state", [state for state in StepState if outcome_of(state) and state is not UNDER_WAY])
def test_disputed_step_can_be_settled_either_way(state: StepState) -> None:
    moves = [move for move in WORDS if may_move(state, move, is_disputed=True)]
    assert {outcome_of(RULES[move].target) for move in moves} == {S.SUCCEEDED, S.FAILED}


@pytest.mark.parametrize("move", Move)
def test_refused_move_is_told_in_words_for_people(move: Move) -> None:
    told = str(IllegalTransition("r1", 0, move, S.INTENDED))
    assert told.startswith("step 0 of run r1 is intended: ")
    assert f"cannot {move.value.replace('_', ' ')}" not in told


def test_no_move_leads_back_to_intended() -> None:
    assert S.INTENDED not in {rule.target for rule in RULES.values()}


@pytest.mark.parametrize(
    ("state", "stands", "outcome"),
    [
        (S.INTENDED, True, None),
        (S.UNCERTAIN, True, None),
        (S.SUCCEEDED, True, S.SUCCEEDED),
        (S.FAILED, False, S.FAILED),
        (S.COMPENSATING, True, S.SUCCEEDED),
        (S.COMPENSATION_FAILED, True, S.SUCCEEDED),
        (S.COMPENSATED, False, S.SUCCEEDED),
    ],
)
def test_state_says_whether_the_effect_stands(state: StepState, stands: bool, outcome: StepState | None) -> None:
    assert is_standing(state) is stands
    assert outcome_of(state) is outcome


def test_fold_takes_the_last_word_of_each_step() -> None:
    events = [("opened", None), ("intended", 0), ("succeeded", 0), ("intended", 1), ("late", 1), ("compensating", 0)]
    assert fold_states(events) == {0: S.COMPENSATING, 1: S.INTENDED}


UNDONE = Standing(S.COMPENSATED, ReadBack.UNVERIFIED)
CONTRADICTIONS: dict[str, tuple[Standing | None, Standing | None, str | None]] = {
    "as told": (UNDONE, UNDONE, None),
    "state": (Standing(S.SUCCEEDED), UNDONE, "the row says compensated, its events say succeeded"),
    "read-back": (
        UNDONE,
        Standing(S.COMPENSATED, ReadBack.VERIFIED),
        "the row says verified, its events say unverified",
    ),
    "no read-back": (
        UNDONE,
        Standing(S.COMPENSATED),
        "the row says no read-back, its events say unverified",
    ),
    "read-back of what stands again": (
        Standing(S.COMPENSATION_FAILED, ReadBack.VERIFIED),
        Standing(S.COMPENSATION_FAILED, ReadBack.UNVERIFIED),
        None,
    ),
    "dispute": (
        Standing(S.SUCCEEDED, is_disputed=True),
        Standing(S.SUCCEEDED),
        "the row says not disputed, its events say disputed",
    ),
    "row gone": (UNDONE, None, "it has no row, its events say compensated"),
    "events gone": (None, UNDONE, "it has a row and no events"),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_contradictions_are_told_by_step(case: str) -> None:
    told, row, words = CONTRADICTIONS[case]
    sides = [{} if side is None else {3: side} for side in (told, row)]
    assert contradictions(*sides) == ({} if words is None else {3: words})


FOLDS: dict[str, tuple[list[str], Standing]] = {
    "unverified": (["compensated", "unverified"], UNDONE),
    "verified later": (["compensated", "unverified", "verified"], Standing(S.COMPENSATED, ReadBack.VERIFIED)),
    "undone again": (["compensated", "verified", "compensation_failed", "by_hand"], Standing(S.COMPENSATED)),
    "disputed": (["succeeded", "disputed"], Standing(S.SUCCEEDED, is_disputed=True)),
    "settled again": (["succeeded", "disputed", "resolved_failed"], Standing(S.FAILED)),
    "confirmed": (["compensated", "unverified", "disputed", "resolved_compensated"], UNDONE),
    "undone by hand": (["compensation_failed", "disputed", "by_hand"], Standing(S.COMPENSATED)),
}


@pytest.mark.parametrize("case", FOLDS)
def test_fold_tells_how_a_step_stands(case: str) -> None:
    kinds, standing = FOLDS[case]
    assert fold_steps([("intended", 0), *((kind, 0) for kind in kinds)]) == {0: standing}
