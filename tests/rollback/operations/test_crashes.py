"""A process that dies at any boundary of an undo: the next rollback ends where no crash would have (D23)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from ledger.core.statuses import StepState
from ledger.queries import check_run_chain, get_run
from rollback.core.errors import RollbackRunning
from rollback.operations.execution import run_foreground
from rollback.queries import get_report
from tests.rollback.downstream import Downstream, Fault, Killed
from tests.rollback.journal import (
    IDEMPOTENT,
    OPERATOR,
    RUN,
    START,
    Naps,
    Ticking,
    make_run,
    order,
    roll_back,
    shop,
    state_of,
)

pytestmark = pytest.mark.usefixtures("db")


class Dying(Ticking):
    """A clock that is asked at every commit, and that kills its process at one of them."""

    def __init__(self, dies_at: int) -> None:
        super().__init__()
        self.asked = 0
        self._dies_at = dies_at

    def now(self) -> Any:
        self.asked += 1
        if self.asked == self._dies_at:
            raise Killed
        return super().now()


def run_with(clock: Ticking, downstream: Downstream) -> Any:
    return run_foreground(run_id=RUN, tools=downstream.tools, actor=OPERATOR, clock=clock, sleep=Naps())


def boundaries() -> int:
    """How often an undisturbed rollback of two steps asks the time; the tests below die at each of these places."""
    return 12


def prepare(**kinds: Any) -> Downstream:
    downstream = Downstream(is_keyed=kinds.pop("is_keyed", False))
    make_run()
    order(downstream=downstream, snapshot=shop(**kinds), count=2)
    return downstream


def test_boundaries_are_as_many_as_the_clock_counts() -> None:
    clock = Dying(dies_at=-1)

    run_with(clock, prepare(is_read_back=True))

    assert clock.asked == boundaries()


@pytest.mark.parametrize("dies_at", range(1, boundaries() + 1))
@pytest.mark.parametrize(
    "kinds",
    [{"is_keyed": True}, {"is_read_back": True}, {"cancel": IDEMPOTENT}],
    ids=["keyed", "read back", "idempotent"],
)
def test_a_crash_anywhere_and_a_re_run_equal_no_crash(kinds: Any, dies_at: int, abandon: Callable[[], None]) -> None:
    downstream = prepare(**kinds)
    # Without a read-back there are fewer places to die at.
    with suppress(Killed):
        run_with(Dying(dies_at), downstream)
    abandon()

    report = roll_back(downstream=downstream)

    assert report.is_complete
    assert downstream.state == {"o0": "gone", "o1": "gone"}
    assert "cancel" in kinds or downstream.undone == {"o0": 1, "o1": 1}
    assert not get_run(RUN).is_rolling_back
    assert check_run_chain(RUN).problems == ()


def test_an_answer_on_record_goes_straight_to_its_check(abandon: Callable[[], None]) -> None:
    class DyingReader(Downstream):
        def read(self, *arguments: Any, **fields: Any) -> Any:
            raise Killed

    downstream = DyingReader()
    make_run()
    order(downstream=downstream, snapshot=shop(is_read_back=True))
    with pytest.raises(Killed):
        roll_back(downstream=downstream)
    abandon()
    sound = Downstream(state=downstream.state)

    report = roll_back(downstream=sound)

    assert (state_of(), report.is_complete) == (StepState.COMPENSATED, True)
    assert (len(downstream.requests), sound.requests) == (1, [])


def test_nothing_is_claimed_between_a_crash_and_the_next_rollback() -> None:
    downstream = prepare(is_keyed=True)
    downstream.faults.append(Fault.KILLED_AFTER)
    with pytest.raises(Killed):
        roll_back(downstream=downstream)

    data = get_report(run_id=RUN, now=START).to_json()

    assert data["unresolved"] == [0, 1]
    assert (data["compensated"], data["complete"]) == ([], False)
    assert get_run(RUN).is_rolling_back


def test_a_lease_that_has_not_run_out_keeps_others_off() -> None:
    downstream = prepare(is_keyed=True)
    downstream.faults.append(Fault.KILLED_BEFORE)
    with pytest.raises(Killed):
        roll_back(downstream=downstream)

    with pytest.raises(RollbackRunning):
        roll_back(downstream=downstream)

    assert len(downstream.requests) == 1
