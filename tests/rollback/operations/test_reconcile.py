"""The run's own agent settles what nobody knew, by what it found downstream (D13, D25)."""

from collections.abc import Mapping
from typing import Any

import pytest

from approvals.core.errors import NotResolvable
from approvals.core.people import Caller
from approvals.operations.calls import begin_call, complete_call
from ledger.core.errors import ForeignRun, OutcomeConflict, StepNotFound
from ledger.core.statuses import SettledBy, StepState
from ledger.queries import check_run_chain, get_step, list_events
from reversi_sdk.references import MISSING
from rollback.core.errors import NoteRequired, StatusUnknown
from rollback.operations.reconcile import NOT_OPEN, OPEN, ReconcileAnswer, Reconciled, reconcile
from rollback.queries import get_plan
from tests.databases import Database
from tests.manifests_registry.factories import make_snapshot
from tests.rollback.downstream import Downstream
from tests.rollback.journal import AGENT, RUN, START, kinds_of, lose_call, make_run, order, shop, state_of

ME = Caller(AGENT, frozenset({"agent"}))
OPERATOR = Caller("dana", frozenset({"operator"}))
NOW = START


def found(step: int = 0, status: str = "succeeded", *, note: str = "seen", result: Any = MISSING) -> ReconcileAnswer:
    return ReconcileAnswer(step=step, status=status, note=note, result=result)


def settle(*answers: ReconcileAnswer, caller: Caller = ME) -> Reconciled:
    return reconcile(run_id=RUN, answers=answers, caller=caller, now=NOW)


def announce() -> int:
    begun = begin_call(
        run_id=RUN,
        principal=AGENT,
        tool="shop.order",
        args={"item": "x"},
        now=NOW,
        observed_by="caller",
        snapshot=shop(),
    )
    return begun.step.number


def test_reconcile_settles_what_was_found_and_names_the_rest(db: Database) -> None:
    make_run()
    for _ in range(3):
        lose_call(snapshot=shop())
    announce()

    done = settle(found(0, result={"id": "o7"}), found(1, "failed"))

    assert done.to_json() == {
        "settled": [{"step": 0, "state": "succeeded"}, {"step": 1, "state": "failed"}],
        "open": [
            {"step": 2, "state": "uncertain", "reason": OPEN},
            {"step": 3, "state": "intended", "reason": OPEN},
        ],
    }
    assert (get_step(RUN, 0).settled_by, get_step(RUN, 1).settled_by) == (SettledBy.LOOKUP, SettledBy.LOOKUP)
    assert kinds_of(0)[-1] == "resolved_succeeded"
    assert check_run_chain(RUN).problems == ()


def test_reconcile_gives_the_undo_what_the_result_says(db: Database) -> None:
    make_run()
    lose_call(snapshot=shop())

    settle(found(result={"id": "o7"}))

    action = get_plan(run_id=RUN, now=NOW).actions[0]
    assert (action.kind.value, action.args) == ("compensate", {"id": "o7"})


def test_reconcile_without_a_result_leaves_an_undo_that_needs_one_unrecoverable(sqlite_db: Database) -> None:
    make_run()
    lose_call(snapshot=shop())

    settle(found())

    assert get_step(RUN, 0).unrecoverable is not None


def test_reconcile_settles_a_call_that_was_only_announced(db: Database) -> None:
    make_run()
    announce()

    settle(found(status="failed", note="never sent"))

    assert state_of() is StepState.FAILED
    event = list_events(RUN)[-1]
    assert event.data is not None
    assert (event.actor, event.data["note"], event.data["from"]) == (AGENT, "never sent", "intended")


def test_reconcile_without_answers_lists_what_is_open(sqlite_db: Database) -> None:
    make_run()
    order(downstream=Downstream(), snapshot=shop())
    lose_call(snapshot=shop())

    done = settle()

    assert (done.settled, [each.step for each in done.left]) == ((), [1])


def test_reconcile_moves_nothing_that_is_settled(db: Database) -> None:
    make_run()
    order(downstream=Downstream(), snapshot=shop())
    lose_call(snapshot=shop())
    settle(found(1, result={"id": "o7"}))
    before = kinds_of(0) + kinds_of(1)

    done = settle(found(0, "failed"), found(1, "failed"))

    assert [(each.step, each.state, each.reason) for each in done.left] == [
        (0, StepState.SUCCEEDED, NOT_OPEN),
        (1, StepState.SUCCEEDED, NOT_OPEN),
    ]
    assert kinds_of(0) + kinds_of(1) == before


def test_a_completion_that_contradicts_what_was_found_is_disputed(sqlite_db: Database) -> None:
    make_run()
    number = announce()
    settle(found(status="failed"))

    with pytest.raises(OutcomeConflict):
        complete_call(run_id=RUN, number=number, status="succeeded", result={"id": "o1"}, actor=AGENT, now=NOW)

    assert get_step(RUN, number).is_disputed


@pytest.mark.parametrize(("caller", "observer"), [(ME, "caller"), (OPERATOR, "gateway")])
def test_what_only_the_agent_saw_counts_as_observed_by_the_caller(db: Database, caller: Caller, observer: str) -> None:
    make_run()
    lose_call(snapshot=shop())
    assert get_step(RUN, 0).observed_by == "gateway"

    settle(found(result={"id": "o7"}), caller=caller)

    assert get_step(RUN, 0).observed_by == observer


def test_an_agent_cannot_get_round_an_approval_by_telling_a_result(sqlite_db: Database) -> None:
    demanding: Mapping[str, Any] = {
        "tool": "shop.order",
        "effect": "compensable",
        "observed_by": "gateway",
        "compensation": {"tool": "shop.cancel", "argument_map": {"id": "$result.id"}},
    }
    make_run()
    lose_call(snapshot=make_snapshot({"tool": "shop.cancel", "compensation_only": True}, demanding))

    settle(found(result={"id": "somebody else's order"}))

    assert get_plan(run_id=RUN, now=NOW).actions[0].needs_approval


BAD: dict[str, tuple[ReconcileAnswer, type[Exception]]] = {
    "status": (found(1, "compensated"), StatusUnknown),
    "note": (found(1, note=" "), NoteRequired),
    "result of a failure": (found(1, "failed", result={}), NotResolvable),
    "step": (found(9), StepNotFound),
}


@pytest.mark.parametrize("case", BAD)
def test_reconcile_checks_every_answer_before_it_takes_one(db: Database, case: str) -> None:
    answer, refusal = BAD[case]
    make_run()
    lose_call(snapshot=shop())
    lose_call(snapshot=shop())

    with pytest.raises(refusal):
        settle(found(0, "failed"), answer)

    assert (state_of(0), state_of(1)) == (StepState.UNCERTAIN, StepState.UNCERTAIN)


@pytest.mark.parametrize("caller", [Caller("eve", frozenset({"agent"})), Caller("ann", frozenset({"auditor"}))])
def test_reconcile_is_for_the_runs_own_agent(sqlite_db: Database, caller: Caller) -> None:
    make_run()
    lose_call(snapshot=shop())

    with pytest.raises(ForeignRun):
        settle(found(), caller=caller)
