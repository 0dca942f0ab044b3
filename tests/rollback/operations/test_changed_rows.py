"""A row that the journal contradicts is believed by nobody: not undone, not written about, never complete (D28)."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from ledger.queries import list_events
from rollback.core.text import plan_lines, report_lines
from rollback.queries import get_last_job, get_plan, get_report
from tests.rollback.downstream import Downstream
from tests.rollback.journal import RUN, START, make_run, order, roll_back, shop

pytestmark = pytest.mark.usefixtures("db")


def change(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def run_of_two(**fields: Any) -> Downstream:
    downstream = Downstream(**fields)
    make_run()
    order(downstream=downstream, snapshot=shop(is_read_back=True), count=2)
    return downstream


def test_a_step_that_only_its_row_calls_undone_is_not_complete() -> None:
    downstream = run_of_two()
    change("UPDATE ledger_step SET state = 'compensated', read_back = 'verified' WHERE number = 0")

    report = roll_back(downstream=downstream)

    assert (report.is_complete, report.to_json()["unresolved"], report.to_json()["compensated"]) == (False, [0], [1])
    assert "  step 0  shop.order  unresolved  the row says compensated, its events say succeeded" in report_lines(
        report
    )
    assert (get_last_job(RUN).report or {})["complete"] is False


def test_a_step_that_only_its_row_calls_standing_is_not_undone_twice() -> None:
    downstream = run_of_two()
    roll_back(downstream=downstream)
    change("UPDATE ledger_step SET state = 'succeeded' WHERE number = 1")
    assert not get_plan(run_id=RUN, now=START).fully_reversible

    report = roll_back(downstream=downstream)

    assert report.to_json()["unresolved"] == [1]
    assert downstream.undone == {"o0": 1, "o1": 1}


def test_a_read_back_that_only_its_row_tells_of_is_not_complete() -> None:
    downstream = run_of_two(is_readable=False)
    roll_back(downstream=downstream)
    change("UPDATE ledger_step SET read_back = 'verified'")

    assert get_report(run_id=RUN, now=START).to_json()["unresolved"] == [0, 1]


def test_nothing_is_written_about_a_step_that_its_events_contradict() -> None:
    downstream = run_of_two()
    change("UPDATE ledger_step SET state = 'compensating' WHERE number = 0")
    change("UPDATE ledger_step SET state = 'compensated', read_back = 'unverified' WHERE number = 1")
    before = [event.seq for event in list_events(RUN) if event.step is not None]

    report = roll_back(downstream=downstream)

    assert [event.seq for event in list_events(RUN) if event.step is not None] == before
    assert (report.to_json()["unresolved"], downstream.requests, downstream.reads) == ([0, 1], [], [])


def test_a_row_that_changed_during_the_rollback_is_not_complete() -> None:
    class Changing(Downstream):
        def compensate(self, call: Any) -> Any:
            answer = super().compensate(call)
            if call.step == 0:
                change("UPDATE ledger_step SET state = 'succeeded' WHERE number = 1")
            return answer

    downstream = Changing()
    make_run()
    order(downstream=downstream, snapshot=shop(), count=2)

    report = roll_back(downstream=downstream)

    assert (report.is_complete, report.to_json()["unresolved"]) == (False, [1])


def test_a_step_whose_row_is_gone_is_told_and_not_complete() -> None:
    run_of_two()
    change("DELETE FROM ledger_undohandle")
    change("DELETE FROM ledger_step WHERE number = 1")
    plan = get_plan(run_id=RUN, now=START)
    line = "in the journal and without a row (somebody changed the database): 1"

    report = get_report(run_id=RUN, now=START)

    assert (report.rowless, report.to_json()["rowless"], report.is_complete) == ((1,), [1], False)
    assert line in report_lines(report)
    assert f"  {line}" in plan_lines(plan)
    assert (plan.fully_reversible, plan.to_json()["rowless"]) == (False, [1])


def test_a_run_whose_rows_are_all_gone_is_not_complete() -> None:
    downstream = run_of_two()
    change("DELETE FROM ledger_undohandle")
    change("DELETE FROM ledger_step")

    report = roll_back(downstream=downstream)

    assert (report.is_complete, report.rowless) == (False, (0, 1))
    assert downstream.state == {"o0": "placed", "o1": "placed"}
