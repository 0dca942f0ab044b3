"""Random runs on a random downstream, rolled back again and again: what must hold whatever goes wrong (D22, D23)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import count
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.core.statuses import StepState
from ledger.queries import check_run_chain, list_events, list_steps
from rollback.core.report import Report
from rollback.models import RollbackJob
from tests.databases import Database
from tests.rollback.downstream import Downstream, Fault, Killed
from tests.rollback.journal import IDEMPOTENT, lose_call, make_call, make_run, roll_back, shop

KINDS: Sequence[dict[str, Any]] = (
    {},
    {"is_read_back": True},
    {"cancel": IDEMPOTENT},
    {"cancel": IDEMPOTENT, "is_read_back": True},
)
FAULTS = st.sampled_from([None, None, None, *Fault])
numbers = count()

RANDOM = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def worlds(draw: st.DrawFn) -> dict[str, Any]:
    length = draw(st.integers(1, 6))
    earlier = [draw(st.sets(st.integers(0, n - 1), max_size=2)) if n else set() for n in range(length)]
    return {
        "kind": draw(st.sampled_from(KINDS)),
        "is_keyed": draw(st.booleans()),
        "is_readable": draw(st.booleans()),
        "depends_on": [tuple(sorted(numbers)) for numbers in earlier],
        "loses": draw(st.sets(st.integers(0, length - 1), max_size=1)),
        "faults": draw(st.lists(FAULTS, max_size=8)),
        "attempts": draw(st.integers(1, 3)),
        "rollbacks": draw(st.integers(1, 3)),
    }


class Recording(Downstream):
    """Checks at each request that it was announced, and that nothing still stands on its step."""

    def compensate(self, call: Any) -> Any:
        events = [event for event in list_events(call.run_id) if event.step == call.step]
        announced = [event for event in events if event.kind == "compensating"][-1]
        assert announced.data is not None
        assert announced.data["key"] == call.idempotency_key
        standing = {step.number for step in list_steps(call.run_id) if step.is_standing and step.number > call.step}
        assert not any(call.step in step.depends_on for step in list_steps(call.run_id) if step.number in standing)
        return super().compensate(call)


def build(world: dict[str, Any]) -> tuple[Recording, str]:
    downstream = Recording(is_keyed=world["is_keyed"], is_readable=world["is_readable"])
    run_id, snapshot = make_run(run_id=f"run_{next(numbers)}"), shop(**world["kind"])
    for number, depends_on in enumerate(world["depends_on"]):
        if number in world["loses"]:
            lose_call(snapshot=snapshot, run_id=run_id)
        else:
            make_call(downstream=downstream, snapshot=snapshot, run_id=run_id, depends_on=depends_on)
    return downstream, run_id


def roll_back_through_crashes(downstream: Recording, run_id: str, attempts: int) -> Report:
    while True:
        try:
            return roll_back(downstream=downstream, run_id=run_id, attempts=attempts)
        except Killed:
            RollbackJob.objects.filter(run_id=run_id, state="running").update(lease_until_ms=0)


@RANDOM
@given(world=worlds())
def test_nothing_is_undone_twice_and_nothing_is_claimed_that_is_not_so(
    sqlite_db: Database, world: dict[str, Any]
) -> None:
    downstream, run_id = build(world)
    downstream.faults = deque(world["faults"])
    can_lie = Fault.LIE in world["faults"] and not (world["kind"].get("is_read_back") and world["is_readable"])

    for _ in range(world["rollbacks"]):
        report = roll_back_through_crashes(downstream, run_id, world["attempts"])

        data, sent = report.to_json(), len(downstream.requests)
        if report.is_complete and not can_lie:
            assert set(downstream.state.values()) <= {"gone"}
        if "cancel" not in world["kind"]:
            # Nothing but an idempotent tool may be sent after an undo that may have worked.
            assert max(downstream.undone.values(), default=0) <= 1
        assert set(data["unresolved"]) >= world["loses"] & {step.number for step in list_steps(run_id)}
        assert not [step for step in list_steps(run_id) if step.state is StepState.COMPENSATING]
        if report.is_complete:
            assert roll_back(downstream=downstream, run_id=run_id).is_complete
            assert len(downstream.requests) == sent
    assert check_run_chain(run_id).problems == ()
