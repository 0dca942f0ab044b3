"""A rollback from end to end on both databases, with the downstream as the only fake (D23)."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ledger.core.statuses import StepState
from ledger.operations.journal import lock_run
from ledger.operations.steps import record_intent
from ledger.queries import check_run_chain, get_run, list_events, list_steps
from manifests_registry.operations.documents import ensure_documents
from reversi_site.kit.transactions import durable
from rollback.core.errors import PlanStale, SelectionInvalid
from rollback.core.jobs import JobState
from rollback.core.options import RollbackOptions
from rollback.core.progress import Progress
from rollback.core.selection import Selection
from rollback.operations.execution import run_foreground
from rollback.queries import get_last_job, get_plan, get_report
from tests.databases import Database
from tests.ledger.factories import make_intent
from tests.rollback.downstream import Downstream, Fault
from tests.rollback.journal import (
    IDEMPOTENT,
    OPERATOR,
    RUN,
    START,
    Naps,
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

pytestmark = pytest.mark.usefixtures("db")


def test_rollback_undoes_newest_first_and_is_complete() -> None:
    downstream, snapshot = Downstream(), shop(is_read_back=True)
    make_run()
    order(downstream=downstream, snapshot=snapshot, count=3)

    report = roll_back(downstream=downstream)

    assert [call.step for call in downstream.requests] == [2, 1, 0]
    assert set(downstream.state.values()) == {"gone"}
    assert report.is_complete
    assert (report.to_json()["compensated"], report.unchecked, report.unverified) == ([0, 1, 2], (), ())
    assert check_run_chain(RUN).problems == ()


def test_rollback_commits_the_intention_before_anything_is_sent() -> None:
    class Watching(Downstream):
        def compensate(self, call: Any) -> Any:
            seen.append((kinds_of(0)[-1], state_of()))
            return super().compensate(call)

    seen: list[Any] = []
    downstream, snapshot = Watching(), shop()
    make_run()
    order(downstream=downstream, snapshot=snapshot)

    roll_back(downstream=downstream)

    assert seen == [("compensating", StepState.COMPENSATING)]


def test_rollback_journals_each_stage() -> None:
    downstream, snapshot = Downstream(), shop(is_read_back=True)
    make_run()
    order(downstream=downstream, snapshot=snapshot)

    roll_back(downstream=downstream)

    assert kinds()[3:] == [
        "rollback_started",
        "compensating",
        "undo_answered",
        "compensated",
        "verified",
        "rollback_finished",
    ]
    begun = next(event for event in list_events(RUN) if event.kind == "compensating")
    assert begun.data is not None
    assert begun.data["key"] == downstream.requests[0].idempotency_key
    assert "args" not in begun.data


def test_rollback_sends_what_the_plan_shows() -> None:
    downstream, snapshot = Downstream(), shop()
    make_run()
    order(downstream=downstream, snapshot=snapshot)
    action = get_plan(run_id=RUN, now=START).actions[0]

    roll_back(downstream=downstream)

    sent = downstream.requests[0]
    assert (sent.tool, sent.args, sent.idempotency_key) == (
        action.compensation_tool,
        action.args,
        action.idempotency_key,
    )
    assert (sent.original_tool, sent.step, sent.run_id) == ("shop.order", 0, RUN)


def test_a_second_rollback_sends_nothing_new() -> None:
    downstream, snapshot = Downstream(), shop(is_read_back=True)
    make_run()
    order(downstream=downstream, snapshot=snapshot, count=2)
    roll_back(downstream=downstream)

    report = roll_back(downstream=downstream)

    assert len(downstream.requests) == 2
    assert report.is_complete


def test_a_rollback_gives_the_run_back() -> None:
    downstream, snapshot = Downstream(), shop()
    make_run()
    order(downstream=downstream, snapshot=snapshot)

    roll_back(downstream=downstream)

    assert not get_run(RUN).is_rolling_back
    assert order(downstream=downstream, snapshot=snapshot) == [1]


def test_a_rollback_closes_the_run_when_asked() -> None:
    make_run()

    roll_back(downstream=Downstream(), closes=True)

    assert get_run(RUN).state == "closed"


def test_a_failed_undo_defers_what_is_beneath_and_spares_the_rest() -> None:
    downstream, snapshot = Downstream(), shop()
    make_run()
    order(downstream=downstream, snapshot=snapshot, count=2)
    make_call(downstream=downstream, snapshot=snapshot, depends_on=(0,))
    downstream.faults.append(Fault.REFUSED)

    data = roll_back(downstream=downstream).to_json()

    assert data["failed"] == [{"step": 2, "error": "card expired"}]
    assert data["deferred"] == [{"step": 0, "blocked_by": [2]}]
    assert data["compensated"] == [1]
    assert not data["complete"]


def test_a_failed_undo_is_tried_again_by_the_next_rollback_with_its_key() -> None:
    downstream, snapshot = Downstream(), shop()
    make_run()
    order(downstream=downstream, snapshot=snapshot)
    downstream.faults.append(Fault.REFUSED)
    roll_back(downstream=downstream)

    report = roll_back(downstream=downstream)

    assert report.is_complete
    assert len({call.idempotency_key for call in downstream.requests}) == 1
    assert downstream.undone == {"o0": 1}


def test_retries_keep_the_key_and_wait_longer_each_time() -> None:
    downstream, snapshot, naps = Downstream(), shop(), Naps()
    make_run()
    order(downstream=downstream, snapshot=snapshot)
    downstream.faults.extend([Fault.REFUSED, Fault.REFUSED])

    report = roll_back(downstream=downstream, attempts=3, naps=naps)

    assert report.is_complete
    assert len({call.idempotency_key for call in downstream.requests}) == 1
    assert naps.seconds == [0.25, 0.5]
    assert kinds_of(0).count("compensating") == 3


def test_a_lying_undo_is_caught_by_its_read_back() -> None:
    downstream, snapshot, naps = Downstream(), shop(is_read_back=True), Naps()
    make_run()
    order(downstream=downstream, snapshot=snapshot)
    downstream.faults.append(Fault.LIE)

    data = roll_back(downstream=downstream, naps=naps).to_json()

    error = "verification failed: shop.get did not show the expected state after the undo"
    assert data["failed"] == [{"step": 0, "error": error}]
    assert naps.seconds == [1, 2]
    failed = next(event for event in list_events(RUN) if event.kind == "verification_failed")
    assert failed.data == {"tool": "shop.get", "mismatch": '`state` is "placed", expected "gone"'}


def test_a_lying_undo_without_a_read_back_is_said_to_be_unchecked() -> None:
    downstream, snapshot = Downstream(), shop()
    make_run()
    order(downstream=downstream, snapshot=snapshot)
    downstream.faults.append(Fault.LIE)

    report = roll_back(downstream=downstream)

    assert (report.unchecked, report.is_complete) == ((0,), True)


def test_an_undo_that_shows_late_is_waited_for() -> None:
    downstream, snapshot = Downstream(stale_reads=2), shop(is_read_back=True)
    make_run()
    order(downstream=downstream, snapshot=snapshot)

    assert roll_back(downstream=downstream).is_complete


def test_a_reader_that_fails_confirms_nothing() -> None:
    downstream, snapshot = Downstream(), shop(is_read_back=True)
    make_run()
    order(downstream=downstream, snapshot=snapshot)
    downstream.read_faults.extend(["down"] * 3)

    report = roll_back(downstream=downstream)

    assert state_of() is StepState.COMPENSATION_FAILED
    assert not report.is_complete


@pytest.mark.parametrize("sends_again", [True, False], ids=["not seen", "seen by now"])
def test_an_undo_that_was_answered_and_not_seen_is_looked_for_before_it_is_sent_again(sends_again: bool) -> None:
    downstream, snapshot = Downstream(), shop(is_read_back=True)
    make_run()
    order(downstream=downstream, snapshot=snapshot)
    if sends_again:
        downstream.faults.append(Fault.LIE)
    else:
        downstream.stale_reads = 3
    roll_back(downstream=downstream)

    report = roll_back(downstream=downstream)

    assert report.is_complete
    assert downstream.undone == {"o0": 1}
    assert len(downstream.requests) == (2 if sends_again else 1)


def test_nothing_is_sent_where_nobody_runs_the_undo() -> None:
    downstream, snapshot = Downstream(runs=frozenset()), shop()
    make_run()
    order(downstream=downstream, snapshot=snapshot)

    data = roll_back(downstream=downstream).to_json()

    assert data["failed"] == [{"step": 0, "error": "nothing can run shop.cancel"}]
    assert (downstream.requests, state_of()) == ([], StepState.SUCCEEDED)
    assert kinds_of(0)[-1] == "undo_refused"


@pytest.mark.parametrize("approves", [True, False])
def test_an_undo_that_needs_an_approval_waits_for_it(approves: bool) -> None:
    downstream, snapshot = Downstream(), shop(requires_approval=True)
    make_run()
    order(downstream=downstream, snapshot=snapshot)

    data = roll_back(downstream=downstream, approves_compensations=approves).to_json()

    assert data["awaiting_approval"] == ([] if approves else [0])
    assert state_of() is (StepState.COMPENSATED if approves else StepState.SUCCEEDED)
    assert data["complete"] is approves


def test_every_bucket_is_reported() -> None:
    downstream = Downstream(is_readable=False)
    snapshot = shop(is_read_back=True, more=[{"tool": "shop.mail", "effect": "irreversible"}])
    make_run(mode="observe")
    order(downstream=downstream, snapshot=snapshot)
    make_call(downstream=downstream, snapshot=snapshot, tool="shop.tag")
    make_call(downstream=downstream, snapshot=snapshot, tool="shop.mail")
    make_call(downstream=downstream, snapshot=snapshot, tool="shop.unknown")
    lost = lose_call(snapshot=snapshot)
    order(downstream=downstream, snapshot=snapshot)
    make_call(downstream=downstream, snapshot=snapshot, depends_on=(5,))
    downstream.faults.append(Fault.REFUSED)

    data = roll_back(downstream=downstream).to_json()

    assert {name: data[name] for name in ("compensated", "skipped", "unrecoverable", "unresolved", "unmanifested")} == {
        "compensated": [0],
        "skipped": [1],
        "unrecoverable": [2],
        "unresolved": [lost],
        "unmanifested": [3],
    }
    assert data["failed"] == [{"step": 6, "error": "card expired"}]
    assert data["deferred"] == [{"step": 5, "blocked_by": [6]}]
    assert (data["unverified"], data["leaves_standing"]) == ([0], [1])
    assert data["residue"] == [{"step": 0, "residue": ["the order number stays taken"]}]


def test_unresolved_steps_are_never_undone() -> None:
    downstream, snapshot = Downstream(), shop()
    make_run()
    lose_call(snapshot=snapshot)

    roll_back(downstream=downstream)

    assert (downstream.requests, state_of()) == ([], StepState.UNCERTAIN)


def test_a_selection_undoes_only_its_steps_and_what_must_go_first() -> None:
    downstream, snapshot = Downstream(), shop()
    make_run()
    order(downstream=downstream, snapshot=snapshot, count=2)
    make_call(downstream=downstream, snapshot=snapshot, depends_on=(0,))

    report = roll_back(downstream=downstream, selection=Selection(steps=(0,)))

    assert [call.step for call in downstream.requests] == [2, 0]
    assert report.is_complete
    assert report.to_json()["selection"]["added"] == [2]
    assert state_of(1) is StepState.SUCCEEDED


def test_a_selection_that_does_not_fit_makes_no_job() -> None:
    make_run()

    with pytest.raises(SelectionInvalid):
        roll_back(downstream=Downstream(), selection=Selection(steps=(4,)))

    assert kinds() == ["opened"]


def test_a_plan_that_changed_since_it_was_shown_is_not_executed() -> None:
    downstream, snapshot = Downstream(), shop()
    make_run()
    order(downstream=downstream, snapshot=snapshot)
    seen = get_plan(run_id=RUN, now=START).digest
    order(downstream=downstream, snapshot=snapshot)

    with pytest.raises(PlanStale):
        roll_back(downstream=downstream, digest=seen)

    assert downstream.requests == []
    assert roll_back(downstream=downstream, digest=get_plan(run_id=RUN, now=START).digest).is_complete


def test_progress_is_told_step_by_step() -> None:
    told: list[Progress] = []
    downstream, snapshot = Downstream(), shop()
    make_run()
    order(downstream=downstream, snapshot=snapshot, count=2)
    downstream.faults.append(Fault.REFUSED)

    roll_back(downstream=downstream, on_progress=told.append)

    assert [(each.done, each.total, each.step, each.word) for each in told] == [
        (1, 2, 1, "compensation_failed"),
        (2, 2, 0, "compensated"),
    ]


def test_a_bug_in_an_executor_ends_the_job_and_gives_the_run_back() -> None:
    class Broken(Downstream):
        def compensate(self, call: Any) -> Any:
            raise ZeroDivisionError("a bug")

    downstream, snapshot = Broken(), shop()
    make_run()
    order(downstream=downstream, snapshot=snapshot)

    with pytest.raises(ZeroDivisionError):
        roll_back(downstream=downstream)

    job = get_last_job(RUN)
    assert (job.state, job.error) == (JobState.FAILED, "ZeroDivisionError: a bug")
    assert not get_run(RUN).is_rolling_back
    assert get_report(run_id=RUN, now=START).to_json()["unresolved"] == [0]


def test_an_interrupted_rollback_gives_the_run_back() -> None:
    class Interrupted(Downstream):
        def compensate(self, call: Any) -> Any:
            raise KeyboardInterrupt

    downstream, snapshot = Interrupted(), shop(cancel=IDEMPOTENT)
    make_run()
    order(downstream=downstream, snapshot=snapshot)

    with pytest.raises(KeyboardInterrupt):
        roll_back(downstream=downstream)

    assert not get_run(RUN).is_rolling_back
    assert roll_back(downstream=Downstream()).is_complete


def reads_of_a_plan(count: int) -> int:
    """Plan a run of so many calls and count the reads that took."""
    snapshot = shop(is_read_back=True)
    run_id = make_run(run_id=f"run_of_{count}")
    entry = snapshot.entries["shop.order"]
    documents = {each.manifest.tool: each.checksum for each in snapshot.involved(entry)}
    ensure_documents(entries=snapshot.involved(entry))
    with durable():
        run = lock_run(run_id)
        for _ in range(count):
            intent = make_intent(tool="shop.order", manifest_checksum=entry.checksum, snapshot=documents)
            record_intent(run=run, intent=intent, actor="agent", now=START)
    with CaptureQueriesContext(connection) as queries:
        assert len(get_plan(run_id=run_id, now=START).actions) == count
    return sum(query["sql"].lstrip().upper().startswith("SELECT") for query in queries)


def test_a_plan_reads_with_a_fixed_number_of_queries() -> None:
    reads_of_a_plan(1)

    assert reads_of_a_plan(10) == reads_of_a_plan(1_000) <= 8


def test_a_key_goes_where_the_tool_takes_it() -> None:
    carrying = {"effect": "irreversible", "key_carrier": {"argument": "key"}}
    downstream, snapshot = Downstream(), shop(cancel=carrying)
    make_run()
    order(downstream=downstream, snapshot=snapshot)

    roll_back(downstream=downstream)

    sent = downstream.requests[0]
    assert sent.args == {"id": "o0", "key": sent.idempotency_key}


def test_an_undo_that_no_longer_is_the_planned_one_is_not_sent() -> None:
    fallback = {"tool": "shop.credit", "argument_map": {"id": "$result.id"}}
    snapshot = shop(
        more=[{"tool": "shop.credit", "effect": "idempotent"}], deadline={"within_ms": "2h"}, fallback=fallback
    )
    downstream = Downstream()
    make_run()
    order(downstream=downstream, snapshot=snapshot)

    report = run_foreground(
        run_id=RUN,
        tools=downstream.tools,
        actor=OPERATOR,
        options=RollbackOptions(),
        clock=LeapingClock(leaps_after=3),
    )

    assert downstream.requests == []
    assert "no longer serves" in report.to_json()["failed"][0]["error"]


class LeapingClock:
    """A clock that leaps past every undo window once it was asked so often."""

    def __init__(self, leaps_after: int) -> None:
        self._left = leaps_after

    def now(self) -> Any:
        self._left -= 1
        return START.replace(hour=23) if self._left < 0 else START.replace(minute=30)


def test_steps_stand_in_the_journal_as_the_report_says(db: Database) -> None:
    downstream, snapshot = Downstream(), shop()
    make_run()
    order(downstream=downstream, snapshot=snapshot, count=2)
    downstream.faults.append(Fault.REFUSED)

    report = roll_back(downstream=downstream)

    assert get_report(run_id=RUN, now=START).to_json() == report.to_json()
    assert [step.state for step in list_steps(RUN)] == [StepState.COMPENSATED, StepState.COMPENSATION_FAILED]
