"""Undone and never checked: what is unverified stays so until somebody looks (D23)."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.core.statuses import ReadBack, StepState
from ledger.queries import get_run, get_step, list_events
from rollback.core.report import Report
from rollback.operations.execution import verify_run
from rollback.operations.resolution import resolve
from tests.rollback.downstream import Downstream, Fault
from tests.rollback.journal import (
    OPERATOR,
    READ_BACK,
    RUN,
    Naps,
    Ticking,
    kinds_of,
    make_call,
    make_run,
    order,
    roll_back,
    shop,
    state_of,
)

pytestmark = pytest.mark.usefixtures("db")


def verify(downstream: Downstream) -> Report:
    return verify_run(run_id=RUN, tools=downstream.tools, actor=OPERATOR, clock=Ticking(), sleep=Naps())


def unverified(*faults: Fault) -> Downstream:
    """A run undone without a reader; afterwards there is one."""
    downstream = Downstream(is_readable=False)
    make_run()
    order(downstream=downstream, snapshot=shop(is_read_back=True))
    downstream.faults.extend(faults)
    roll_back(downstream=downstream)
    downstream.is_readable = True
    return downstream


def test_an_undo_that_nobody_can_read_back_is_unverified() -> None:
    downstream = Downstream(is_readable=False)
    make_run()
    order(downstream=downstream, snapshot=shop(is_read_back=True))

    report = roll_back(downstream=downstream)

    assert (report.unverified, report.is_complete) == ((0,), False)
    assert (state_of(), get_step(RUN, 0).read_back) == (StepState.COMPENSATED, ReadBack.UNVERIFIED)
    event = next(event for event in list_events(RUN) if event.kind == "unverified")
    assert event.data == {"reason": "no verifier is available to run the declared read-back"}


def test_a_second_rollback_without_a_reader_does_not_say_complete() -> None:
    downstream = unverified()
    downstream.is_readable = False

    report = roll_back(downstream=downstream)

    assert (report.unverified, report.is_complete) == ((0,), False)


@pytest.mark.parametrize("how", [verify, lambda downstream: roll_back(downstream=downstream)], ids=["verify", "again"])
def test_an_open_read_back_is_made_up_for(how: Any) -> None:
    downstream = unverified()

    report = how(downstream)

    assert report.is_complete
    assert len(downstream.requests) == 1
    assert kinds_of(0)[-1] == "verified"


@pytest.mark.parametrize("how", [verify, lambda downstream: roll_back(downstream=downstream)], ids=["verify", "again"])
def test_an_undo_that_never_happened_is_found_out(how: Any) -> None:
    downstream = unverified(Fault.LIE)

    report = how(downstream)

    error = "verification failed: shop.get did not show the expected state after the undo"
    assert report.to_json()["failed"] == [{"step": 0, "error": error}]
    assert state_of() is StepState.COMPENSATION_FAILED
    assert kinds_of(0)[-2:] == ["compensation_failed", "verification_failed"]
    assert len(downstream.requests) == 1


def test_what_was_found_out_is_undone_by_the_next_rollback() -> None:
    downstream = unverified(Fault.LIE)
    verify(downstream)

    report = roll_back(downstream=downstream)

    assert report.is_complete
    assert downstream.undone == {"o0": 1}


def test_a_step_found_standing_holds_what_is_beneath_it() -> None:
    downstream = Downstream(is_readable=False, runs=frozenset({"shop.cancel"}))
    snapshot = shop(is_read_back=True)
    make_run()
    order(downstream=downstream, snapshot=snapshot)
    make_call(downstream=downstream, snapshot=snapshot, depends_on=(0,))
    downstream.faults.extend([Fault.LIE, Fault.REFUSED])
    roll_back(downstream=downstream)
    downstream.is_readable = True

    report = roll_back(downstream=downstream)

    assert report.to_json()["deferred"] == [{"step": 0, "blocked_by": [1]}]
    assert len(downstream.requests) == 2


def test_a_reader_that_fails_leaves_it_open() -> None:
    downstream = unverified()
    downstream.read_faults.extend(["down"] * 3)

    report = verify(downstream)

    assert (report.unverified, report.is_complete) == ((0,), False)
    assert kinds_of(0)[-1] == "read_back_failed"


def test_verifying_sends_nothing_and_gives_the_run_back() -> None:
    downstream = unverified()
    order(downstream=downstream, snapshot=shop())

    verify(downstream)

    assert len(downstream.requests) == 1
    assert state_of(1) is StepState.SUCCEEDED
    assert not get_run(RUN).is_rolling_back


def test_a_read_back_that_cannot_be_filled_fails_the_undo() -> None:
    downstream = Downstream()
    missing = {**READ_BACK, "arguments": {"id": "$result.other"}}
    make_run()
    order(downstream=downstream, snapshot=shop(verification=missing))

    report = roll_back(downstream=downstream)

    assert "cannot verify: arguments unavailable" in report.to_json()["failed"][0]["error"]


def test_by_hand_claims_are_read_back_too() -> None:
    downstream = Downstream(is_readable=False)
    make_run()
    order(downstream=downstream, snapshot=shop(is_read_back=True))
    downstream.faults.append(Fault.REFUSED)
    roll_back(downstream=downstream)
    resolve(run_id=RUN, number=0, status="compensated", note="cancelled on the phone", actor=OPERATOR)
    downstream.is_readable = True

    report = verify(downstream)

    assert state_of() is StepState.COMPENSATION_FAILED
    assert not report.is_complete
