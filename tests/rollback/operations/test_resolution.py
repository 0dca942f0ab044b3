"""Settling by a person's word (D13, D24)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from approvals.operations.completion import complete_call
from ledger.core.errors import IllegalTransition, OutcomeConflict, StepNotFound
from ledger.core.statuses import ReadBack, StepState
from ledger.core.values import StepRecord
from ledger.queries import get_run, list_events
from rollback.core.errors import NoteRequired, NotUndoneByHand, ReadBackMismatch, RollbackRunning, StatusUnknown
from rollback.operations.jobs import claim_job, start_rollback
from rollback.operations.resolution import resolve
from rollback.queries import get_last_job, get_plan, get_report
from tests.rollback.downstream import Downstream, Fault, Killed
from tests.rollback.journal import (
    AGENT,
    OPERATOR,
    RUN,
    START,
    Ticking,
    kinds,
    kinds_of,
    lose_call,
    make_call,
    make_run,
    order,
    roll_back,
    shop,
    state_of,
)

LATER = START + timedelta(hours=2)

pytestmark = pytest.mark.usefixtures("db")


def settle(number: int = 0, status: str = "compensated", **fields: Any) -> StepRecord:
    usual: dict[str, Any] = {
        "note": "looked in the shop",
        "actor": OPERATOR,
        "clock": Ticking(START + timedelta(hours=2)),
    }
    return resolve(run_id=RUN, number=number, status=status, **{**usual, **fields})


def failed(**fields: Any) -> Downstream:
    """A run whose undo was refused."""
    downstream = Downstream()
    make_run()
    order(downstream=downstream, snapshot=shop(**fields))
    downstream.faults.append(Fault.REFUSED)
    roll_back(downstream=downstream)
    return downstream


@pytest.mark.parametrize("status", ["succeeded", "failed"])
def test_a_lost_call_is_settled(status: str) -> None:
    make_run()
    lose_call(snapshot=shop())

    step = settle(status=status)

    assert step.state == status
    assert kinds_of(0)[-1] == f"resolved_{status}"


def test_a_result_lets_the_step_be_undone() -> None:
    downstream = Downstream()
    make_run()
    lose_call(snapshot=shop())

    settle(status="succeeded", result={"id": "o7"})
    roll_back(downstream=downstream)

    assert [call.args for call in downstream.requests] == [{"id": "o7"}]


def test_without_a_result_the_step_is_unrecoverable() -> None:
    make_run()
    lose_call(snapshot=shop())

    settle(status="succeeded")

    action = get_plan(run_id=RUN, now=START).actions[0]
    assert (action.kind, "$result.id" in (action.reason or "")) == ("unrecoverable", True)


@pytest.mark.parametrize("status", ["succeeded", "failed", "compensated"])
@pytest.mark.parametrize("note", ["", "  \n"])
def test_a_note_is_required(status: str, note: str) -> None:
    make_run()
    lose_call(snapshot=shop())

    with pytest.raises(NoteRequired):
        settle(status=status, note=note)


def test_other_words_are_refused() -> None:
    make_run()
    lose_call(snapshot=shop())

    with pytest.raises(StatusUnknown, match="succeeded, failed or compensated"):
        settle(status="undone")


@pytest.mark.parametrize("status", ["failed", "compensated"])
def test_what_does_not_exist_is_not_found(status: str) -> None:
    make_run()

    with pytest.raises(StepNotFound):
        settle(number=4, status=status)


def test_a_failed_undo_is_settled_by_hand() -> None:
    failed()

    step = settle(note="cancelled on the phone")

    assert (step.state, step.is_by_hand, step.read_back) == (StepState.COMPENSATED, True, ReadBack.NOT_DECLARED)
    event = next(event for event in list_events(RUN) if event.kind == "by_hand")
    assert event.data is not None
    assert (event.data["note"], event.actor) == ("cancelled on the phone", OPERATOR)


def test_by_hand_is_told_in_the_report() -> None:
    downstream = failed()
    settle()

    data = roll_back(downstream=downstream).to_json()

    assert (data["compensated"], data["by_hand"], data["unchecked"], data["complete"]) == ([0], [0], [0], True)
    assert len(downstream.requests) == 1


@pytest.mark.parametrize("is_gone", [True, False])
def test_by_hand_is_read_back_where_that_is_declared(is_gone: bool) -> None:
    downstream = failed(is_read_back=True)
    if is_gone:
        downstream.state["o0"] = "gone"
        step = settle(tools=downstream.tools)
        assert (step.state, step.read_back) == (StepState.COMPENSATED, ReadBack.VERIFIED)
        return

    with pytest.raises(ReadBackMismatch, match='`state` is "placed", expected "gone"'):
        settle(tools=downstream.tools)

    assert state_of() is StepState.COMPENSATION_FAILED
    assert not get_run(RUN).is_rolling_back


@pytest.mark.parametrize("is_down", [True, False], ids=["reader down", "no reader"])
def test_by_hand_that_nobody_could_read_back_is_unverified(is_down: bool) -> None:
    downstream = failed(is_read_back=True)
    downstream.read_faults.extend(["down"] * 3)

    step = settle(tools=downstream.tools) if is_down else settle()

    assert step.read_back is ReadBack.UNVERIFIED
    assert get_report(run_id=RUN, now=START).unverified == (0,)


@pytest.mark.parametrize("tool", ["shop.mail", "shop.unknown"], ids=["irreversible", "unmanifested"])
def test_what_has_no_undo_may_be_settled_by_hand(tool: str) -> None:
    downstream = Downstream()
    make_run(mode="observe")
    make_call(downstream=downstream, snapshot=shop(more=[{"tool": "shop.mail", "effect": "irreversible"}]), tool=tool)

    assert settle().state is StepState.COMPENSATED


@pytest.mark.parametrize(
    ("prepare", "why"),
    [
        (lambda: order(downstream=Downstream(), snapshot=shop()), "roll it back instead"),
        (lambda: lose_call(snapshot=shop()), "resolve it succeeded or failed first"),
    ],
    ids=["undoable", "uncertain"],
)
def test_what_can_be_undone_or_is_unknown_is_not_settled_by_hand(prepare: Any, why: str) -> None:
    make_run()
    prepare()

    with pytest.raises(NotUndoneByHand, match=why):
        settle()

    assert "rollback_started" not in kinds()


def test_what_is_undone_is_not_settled_again() -> None:
    failed()
    settle()

    with pytest.raises(NotUndoneByHand, match="already undone"):
        settle()
    with pytest.raises(IllegalTransition):
        settle(status="succeeded")


def test_by_hand_needs_the_lease() -> None:
    failed()
    job = start_rollback(run_id=RUN, actor=OPERATOR, now=START)
    claim_job(job_id=job.id, worker="w", now=START)

    with pytest.raises(RollbackRunning):
        settle()


def test_by_hand_gives_the_run_back() -> None:
    failed()

    settle()

    assert not get_run(RUN).is_rolling_back
    assert get_last_job(RUN).kind == "resolve"


def test_a_failed_undo_may_be_said_not_to_have_happened() -> None:
    downstream = failed()

    assert settle(status="succeeded").state is StepState.SUCCEEDED
    assert roll_back(downstream=downstream).is_complete


def disputed(*, fault: Fault | None = None, **fields: Any) -> Downstream:
    """A step that a person called succeeded and a rollback undid, before its caller said that the call had failed."""
    downstream = Downstream(state={"o0": "placed"})
    make_run()
    lose_call(snapshot=shop(**fields))
    settle(status="succeeded", result={"id": "o0"})
    downstream.faults.append(fault)
    roll_back(downstream=downstream)
    with pytest.raises(OutcomeConflict):
        complete_call(run_id=RUN, number=0, status="failed", error="too late", actor=AGENT, now=LATER)
    return downstream


@pytest.mark.parametrize("fault", [None, Fault.REFUSED, Fault.LOST_BEFORE], ids=["undone", "refused", "in doubt"])
@pytest.mark.parametrize("status", ["compensated", "failed"])
def test_a_disputed_undo_is_settled_either_way(fault: Fault | None, status: str) -> None:
    downstream = disputed(fault=fault)
    assert not get_report(run_id=RUN, now=LATER).is_complete

    step = settle(status=status)

    assert (step.state, step.is_disputed) == (status, False)
    assert roll_back(downstream=downstream).is_complete
    assert len(downstream.requests) == 1


def test_a_disputed_undo_that_is_confirmed_is_not_by_hand() -> None:
    downstream = disputed(is_read_back=True)

    settle(tools=downstream.tools)

    report = get_report(run_id=RUN, now=LATER)
    assert (report.is_complete, report.to_json()["by_hand"]) == (True, [])
    assert report.to_json()["residue"] == [{"step": 0, "residue": ["the order number stays taken"]}]


def test_a_disputed_undo_is_read_back_before_it_is_confirmed() -> None:
    downstream = disputed(is_read_back=True)
    downstream.state["o0"] = "placed"

    with pytest.raises(ReadBackMismatch):
        settle(tools=downstream.tools)

    assert get_report(run_id=RUN, now=LATER).to_json()["unresolved"] == [0]


def test_a_disputed_call_is_settled_before_its_undo() -> None:
    make_run()
    lose_call(snapshot=shop())
    settle(status="succeeded", result={"id": "o0"})
    with pytest.raises(OutcomeConflict):
        complete_call(run_id=RUN, number=0, status="failed", error="too late", actor=AGENT, now=LATER)

    with pytest.raises(NotUndoneByHand, match="resolve it succeeded or failed first"):
        settle()


def test_a_word_about_an_undo_settles_its_sends_whatever_the_clocks_say() -> None:
    downstream = Downstream()
    make_run()
    order(downstream=downstream, snapshot=shop())
    downstream.faults.append(Fault.LOST_BEFORE)
    roll_back(downstream=downstream)

    settle(status="succeeded", clock=Ticking(START - timedelta(days=1)))

    assert roll_back(downstream=downstream).is_complete
    assert downstream.undone == {"o0": 1}


def test_a_word_and_what_it_settles_are_written_together() -> None:
    def dying(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith('UPDATE "rollback_attempt"'):
            raise Killed
        return execute(sql, *rest)

    downstream = Downstream()
    make_run()
    order(downstream=downstream, snapshot=shop())
    downstream.faults.append(Fault.LOST_BEFORE)
    roll_back(downstream=downstream)

    with connection.execute_wrapper(dying), pytest.raises(Killed):
        settle(status="succeeded")

    assert state_of() is StepState.COMPENSATION_FAILED
