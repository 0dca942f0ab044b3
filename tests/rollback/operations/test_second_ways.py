"""No second way of undoing is taken while the first one may have worked (D5, D23)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ledger.core.statuses import StepState
from rollback.core.ports import Tools
from rollback.executors.command import CheckingExecutor
from tests.rollback.downstream import Downstream, Fault
from tests.rollback.journal import READ_BACK, START, Ticking, make_call, make_run, roll_back, shop, state_of

pytestmark = pytest.mark.usefixtures("db")
REFUND = {"tool": "shop.refund", "effect": "irreversible", "compensation_only": True}
LATER = Ticking(START + timedelta(days=1))


def with_fallback(**fields: Any) -> Any:
    fallback = {"tool": "shop.refund", "argument_map": {"id": "$result.id"}, **fields.pop("fallback", {})}
    return shop(deadline={"within_ms": 7_200_000}, more=[REFUND], fallback=fallback, **fields)


def test_a_check_that_fails_does_not_open_the_fallback() -> None:
    downstream = Downstream(is_keyed=True)
    make_run()
    make_call(downstream=downstream, snapshot=with_fallback())
    roll_back(downstream=downstream, tools=Tools(CheckingExecutor(downstream, ["false"]), downstream))

    roll_back(downstream=downstream, clock=LATER)

    assert {call.tool for call in downstream.requests} == {"shop.cancel"}
    assert downstream.undone == {"o0": 1}


def test_an_undo_that_was_answered_and_not_seen_does_not_open_the_fallback_by_failing_later() -> None:
    downstream = Downstream(is_keyed=True)
    make_run()
    make_call(downstream=downstream, snapshot=with_fallback(is_read_back=True))
    downstream.stale_reads = 6
    roll_back(downstream=downstream)
    downstream.stale_reads = 6
    downstream.faults.append(Fault.REFUSED)
    roll_back(downstream=downstream)

    roll_back(downstream=downstream, clock=LATER)

    assert {call.tool for call in downstream.requests} == {"shop.cancel"}
    assert downstream.undone == {"o0": 1}


def test_a_lost_undo_does_not_open_the_fallback_because_its_repeat_reached_nothing() -> None:
    downstream = Downstream(is_keyed=True)
    make_run()
    make_call(downstream=downstream, snapshot=with_fallback())
    downstream.faults.extend([Fault.LOST_AFTER, Fault.DOWN])
    roll_back(downstream=downstream, attempts=2)

    roll_back(downstream=downstream, clock=LATER)

    assert {call.tool for call in downstream.requests} == {"shop.cancel"}
    assert downstream.undone == {"o0": 1}


def test_a_fallback_that_a_read_back_vouched_for_is_told_as_one() -> None:
    downstream = Downstream()
    make_run()
    fallback = {"residue": ["fees are kept"], "verification": READ_BACK}
    make_call(downstream=downstream, snapshot=with_fallback(fallback=fallback))
    downstream.faults.append(Fault.LOST_AFTER)

    data = roll_back(downstream=downstream, clock=LATER).to_json()

    assert state_of() is StepState.COMPENSATED
    assert (data["fallback"], data["residue"]) == ([0], [{"step": 0, "residue": ["fees are kept"]}])
