"""A step that somebody settles while it is looked at is not undone as it was before (D21, D23)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest

from ledger.core.statuses import StepState
from ledger.queries import get_step
from reversi_sdk.references import MISSING
from rollback.core.ports import Answer, ReadFailed
from rollback.operations.resolution import resolve
from tests.rollback.downstream import Downstream, Fault
from tests.rollback.journal import RUN, START, Ticking, make_call, make_run, order, roll_back, shop

pytestmark = pytest.mark.usefixtures("db")


class Interrupted(Downstream):
    """Lets something else happen in the middle of the next read."""

    meanwhile: Callable[[], Any] | None = None

    def read(self, tool: str, arguments: Mapping[str, Any], *, timeout_ms: int) -> Answer | ReadFailed:
        happens, self.meanwhile = self.meanwhile, None
        if happens is not None:
            happens()
        return super().read(tool, arguments, timeout_ms=timeout_ms)


def resolving(status: str, result: Any = MISSING) -> Callable[[], Any]:
    clock = Ticking(START + timedelta(hours=2))
    return lambda: resolve(run_id=RUN, number=1, status=status, result=result, note="looked", actor="dana", clock=clock)


def in_doubt() -> Interrupted:
    downstream = Interrupted()
    make_run()
    snapshot = shop(is_read_back=True)
    order(downstream=downstream, snapshot=snapshot)
    make_call(downstream=downstream, snapshot=snapshot, thing="wrong")
    downstream.state["right"] = "placed"
    downstream.faults.append(Fault.LOST_BEFORE)
    downstream.read_faults.extend(["down"] * 4)
    roll_back(downstream=downstream)
    downstream.requests.clear()
    downstream.read_faults.clear()
    return downstream


def test_a_corrected_result_is_never_undone_by_the_old_one() -> None:
    downstream = in_doubt()
    downstream.meanwhile = resolving("succeeded", {"id": "right"})

    report = roll_back(downstream=downstream)

    assert not report.is_complete
    assert [call.args["id"] for call in downstream.requests if call.step == 1] == []
    assert get_step(RUN, 1).state is StepState.SUCCEEDED
    assert roll_back(downstream=downstream).is_complete
    assert (downstream.state["right"], downstream.undone["right"]) == ("gone", 1)


def test_a_match_vouches_for_nobody_elses_word() -> None:
    downstream = in_doubt()
    downstream.state["wrong"] = "gone"
    downstream.meanwhile = resolving("succeeded", {"id": "right"})

    report = roll_back(downstream=downstream)

    assert not report.is_complete
    assert get_step(RUN, 1).state is StepState.SUCCEEDED
