"""An undo whose outcome is unknown: the rule of D23, case by case, and that nothing is undone twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ledger.core.statuses import StepState
from ledger.queries import get_step
from rollback.operations.resolution import resolve
from rollback.queries import get_plan
from tests.rollback.downstream import Downstream, Fault, Killed
from tests.rollback.journal import (
    IDEMPOTENT,
    OPERATOR,
    RUN,
    START,
    kinds_of,
    make_run,
    order,
    roll_back,
    shop,
    state_of,
)

pytestmark = pytest.mark.usefixtures("db")

TOOLS: Mapping[str, Mapping[str, Any]] = {
    "idempotent": {"cancel": IDEMPOTENT},
    "keyed": {"is_keyed": True},
    "carries key": {"cancel": {"effect": "irreversible", "key_carrier": {"meta": True}}, "is_keyed": True},
    "read-back": {"is_read_back": True},
    "none": {},
}


def prepare(tool: str, *faults: Fault | None) -> Downstream:
    kind = TOOLS[tool]
    downstream = Downstream(is_keyed=kind.get("is_keyed", False))
    make_run()
    snapshot = shop(cancel=kind.get("cancel"), is_read_back=kind.get("is_read_back", False))
    order(downstream=downstream, snapshot=snapshot)
    downstream.faults.extend(faults)
    return downstream


@pytest.mark.parametrize("fault", [Fault.LOST_BEFORE, Fault.LOST_AFTER])
@pytest.mark.parametrize("tool", ["idempotent", "keyed", "carries key"])
def test_a_harmless_undo_is_repeated_in_the_same_run(tool: str, fault: Fault) -> None:
    downstream = prepare(tool, fault)

    report = roll_back(downstream=downstream, attempts=2)

    assert report.is_complete
    assert len({call.idempotency_key for call in downstream.requests}) == 1
    assert len(downstream.requests) == 2


@pytest.mark.parametrize("fault", [Fault.LOST_BEFORE, Fault.LOST_AFTER])
@pytest.mark.parametrize("tool", ["idempotent", "keyed", "carries key"])
def test_a_harmless_undo_is_repeated_by_the_next_rollback(tool: str, fault: Fault) -> None:
    downstream = prepare(tool, fault)
    first = roll_back(downstream=downstream)

    report = roll_back(downstream=downstream)

    assert first.to_json()["failed"] == [{"step": 0, "error": "outcome unknown: the connection was lost"}]
    assert report.is_complete
    assert tool == "idempotent" or downstream.undone == {"o0": 1}


@pytest.mark.parametrize("attempts", [1, 2, 4])
def test_a_lost_answer_is_looked_for_where_a_read_back_is_declared(attempts: int) -> None:
    downstream = prepare("read-back", Fault.LOST_AFTER)

    report = roll_back(downstream=downstream, attempts=attempts)

    assert report.is_complete
    assert (len(downstream.requests), downstream.undone) == (1, {"o0": 1})
    assert not get_step(RUN, 0).is_undo_outcome_unknown


def test_what_a_look_does_not_show_is_repeated_once() -> None:
    downstream = prepare("read-back", Fault.LOST_BEFORE, Fault.LOST_BEFORE)

    roll_back(downstream=downstream, attempts=5)

    assert len(downstream.requests) == 2
    assert (state_of(), get_step(RUN, 0).is_undo_outcome_unknown) == (StepState.COMPENSATION_FAILED, True)


def test_what_was_repeated_once_is_only_looked_for_afterwards() -> None:
    downstream = prepare("read-back", Fault.LOST_BEFORE, Fault.LOST_BEFORE)
    roll_back(downstream=downstream, attempts=5)

    again = roll_back(downstream=downstream, attempts=5)
    downstream.state["o0"] = "gone"
    after = roll_back(downstream=downstream)

    assert len(downstream.requests) == 2
    assert "does not show the undo" in again.to_json()["failed"][0]["error"]
    assert after.is_complete


def test_a_repeat_that_is_seen_is_done() -> None:
    downstream = prepare("read-back", Fault.LOST_BEFORE)

    assert roll_back(downstream=downstream, attempts=2).is_complete
    assert downstream.undone == {"o0": 1}


def test_nothing_is_sent_while_the_look_fails() -> None:
    downstream = prepare("read-back", Fault.LOST_AFTER)
    downstream.read_faults.extend(["down"] * 3)

    first = roll_back(downstream=downstream, attempts=5)
    second = roll_back(downstream=downstream)

    assert "could not be read: down" in first.to_json()["failed"][0]["error"]
    assert second.is_complete
    assert len(downstream.requests) == 1


@pytest.mark.parametrize("fault", [Fault.LOST_BEFORE, Fault.LOST_AFTER])
@pytest.mark.parametrize("attempts", [1, 3])
def test_an_undo_that_nothing_can_tell_about_is_never_sent_again(fault: Fault, attempts: int) -> None:
    downstream = prepare("none", fault)

    reports = [roll_back(downstream=downstream, attempts=attempts) for _ in range(3)]

    assert len(downstream.requests) == 1
    assert [report.to_json()["failed"] for report in reports] == [
        [{"step": 0, "error": "outcome unknown: the connection was lost"}]
    ] * 3
    assert (state_of(), get_step(RUN, 0).is_undo_outcome_unknown) == (StepState.COMPENSATION_FAILED, True)
    assert get_plan(run_id=RUN, now=START).actions[0].kind == "unresolved"


def test_without_its_reader_a_declared_read_back_helps_nobody() -> None:
    downstream = prepare("read-back", Fault.LOST_AFTER)
    downstream.is_readable = False
    roll_back(downstream=downstream)

    report = roll_back(downstream=downstream, attempts=3)

    assert len(downstream.requests) == 1
    assert not report.is_complete


@pytest.mark.parametrize(
    ("status", "sends", "state"),
    [("compensated", 1, StepState.COMPENSATED), ("succeeded", 2, StepState.COMPENSATED)],
)
def test_an_operator_decides_what_nobody_can_tell(status: str, sends: int, state: StepState) -> None:
    downstream = prepare("none", Fault.LOST_BEFORE)
    roll_back(downstream=downstream)

    resolve(run_id=RUN, number=0, status=status, note="looked in the shop", actor=OPERATOR)
    report = roll_back(downstream=downstream)

    assert (len(downstream.requests), state_of()) == (sends, state)
    assert len({call.idempotency_key for call in downstream.requests}) == 1
    assert report.is_complete


def test_a_corrected_result_gets_another_key() -> None:
    downstream = prepare("none", Fault.LOST_BEFORE)
    roll_back(downstream=downstream)

    resolve(run_id=RUN, number=0, status="succeeded", note="it was another order", actor=OPERATOR, result={"id": "o9"})
    roll_back(downstream=downstream)

    assert [call.args["id"] for call in downstream.requests] == ["o0", "o9"]
    assert len({call.idempotency_key for call in downstream.requests}) == 2


def test_a_definite_failure_without_a_key_does_not_settle_an_earlier_doubt() -> None:
    downstream = prepare("idempotent", Fault.LOST_AFTER, Fault.REFUSED)

    roll_back(downstream=downstream, attempts=2)

    assert get_step(RUN, 0).is_undo_outcome_unknown


def test_a_definite_failure_under_the_key_settles_the_doubt() -> None:
    downstream = prepare("keyed", Fault.LOST_BEFORE, Fault.REFUSED)

    roll_back(downstream=downstream, attempts=2)

    assert not get_step(RUN, 0).is_undo_outcome_unknown


@pytest.mark.parametrize("tool", ["idempotent", "keyed", "carries key"])
def test_a_send_that_reached_nothing_does_not_settle_an_earlier_doubt(tool: str) -> None:
    downstream = prepare(tool, Fault.LOST_AFTER, Fault.DOWN)

    report = roll_back(downstream=downstream, attempts=2)

    assert get_step(RUN, 0).is_undo_outcome_unknown
    assert report.to_json()["failed"][0]["error"] == "outcome unknown: the connection was lost"
    roll_back(downstream=downstream)
    assert (state_of(), downstream.undone["o0"]) == (StepState.COMPENSATED, 1 if downstream.is_keyed else 2)


def test_a_send_that_reached_nothing_raises_no_doubt() -> None:
    downstream = prepare("none", Fault.DOWN)

    report = roll_back(downstream=downstream)

    assert (state_of(), get_step(RUN, 0).is_undo_outcome_unknown) == (StepState.COMPENSATION_FAILED, False)
    assert report.to_json()["failed"][0]["error"] == "nothing was sent: it is down"
    assert roll_back(downstream=downstream).is_complete


KILLS = [Fault.KILLED_BEFORE, Fault.KILLED_AFTER]


@pytest.mark.parametrize("fault", KILLS)
@pytest.mark.parametrize("tool", list(TOOLS))
def test_a_killed_rollback_is_finished_by_the_rule(tool: str, fault: Fault, abandon: Any) -> None:
    downstream = prepare(tool, fault)
    with pytest.raises(Killed):
        roll_back(downstream=downstream)
    abandon()

    report = roll_back(downstream=downstream)

    was_done = fault is Fault.KILLED_AFTER
    if tool == "none":
        assert not report.is_complete
        assert downstream.undone == ({"o0": 1} if was_done else {})
        assert report.to_json()["failed"][0]["error"].startswith("outcome unknown")
    else:
        assert report.is_complete
        assert downstream.state == {"o0": "gone"}
        assert tool == "idempotent" or downstream.undone == {"o0": 1}
    assert kinds_of(0).count("compensated") == (0 if tool == "none" else 1)
