"""One executor per run: leases, fences, and what happens to those who come too late (D23)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from threading import Thread
from typing import Any

import pytest
from django.db import IntegrityError, connections, transaction
from django_q.models import OrmQ

from approvals.core.errors import CallBlocked
from ledger.core.errors import FenceLost, RunNotFound
from ledger.core.statuses import ReadBack, StepState
from ledger.operations.compensations import compensate_by_hand
from ledger.operations.journal import lock_run
from ledger.queries import get_run
from reversi_site.kit.clock import database_now_ms
from reversi_site.kit.transactions import durable
from rollback.core.backoff import Retrying
from rollback.core.errors import JobNotFound, PlanStale, RollbackRunning
from rollback.core.jobs import JobKind, JobState
from rollback.core.options import RollbackOptions
from rollback.core.selection import Selection
from rollback.models import RollbackJob
from rollback.operations.execution import execute_job, run_foreground, verify_run
from rollback.operations.jobs import claim_job, start_rollback, start_verification
from rollback.operations.recovery import MOST_ENQUEUES, recover_abandoned_jobs
from rollback.operations.resolution import resolve
from rollback.queries import find_live_job, get_job, get_last_job, get_plan
from tests.databases import Database
from tests.rollback.downstream import Downstream, Fault, Killed
from tests.rollback.journal import (
    OPERATOR,
    RUN,
    START,
    Naps,
    Ticking,
    kinds,
    lose_call,
    make_call,
    make_run,
    order,
    roll_back,
    shop,
    state_of,
)

LATER = START + timedelta(minutes=5)

pytestmark = pytest.mark.usefixtures("db")


def start(**options: Any) -> str:
    return start_rollback(run_id=RUN, actor=OPERATOR, now=START, options=RollbackOptions(**options)).id


def execute(job_id: str, downstream: Downstream) -> Any:
    return execute_job(job_id=job_id, tools=downstream.tools, clock=Ticking(), sleep=Naps())


def prepare(count: int = 1, **fields: Any) -> Downstream:
    downstream = Downstream()
    make_run()
    order(downstream=downstream, snapshot=shop(**fields), count=count)
    return downstream


def test_a_started_rollback_waits_in_the_queue_with_its_task() -> None:
    prepare()

    job = get_job(start())

    assert (job.kind, job.state, job.requested_by) == (JobKind.ROLLBACK, JobState.QUEUED, OPERATOR)
    assert OrmQ.objects.count() == 1
    assert job.to_json() == {
        "job": job.id,
        "run_id": RUN,
        "kind": "rollback",
        "state": "queued",
        "waiting_for": None,
        "progress": {"done": 0, "total": 0},
        "report": None,
        "error": None,
    }


def test_a_queued_job_is_done_by_a_worker() -> None:
    downstream = prepare(count=2)
    job_id = start()

    job = execute(job_id, downstream)

    assert (job.state, job.done, job.total) == (JobState.DONE, 2, 2)
    assert job.report is not None
    assert job.report["complete"]
    assert get_last_job(RUN) == job


def test_a_job_that_is_delivered_twice_is_done_once() -> None:
    downstream = prepare()
    job_id = start()
    first = execute(job_id, downstream)

    second = execute(job_id, downstream)

    assert second == first
    assert len(downstream.requests) == 1


def test_a_run_has_one_live_job() -> None:
    prepare()
    job_id = start()

    with pytest.raises(RollbackRunning, match=job_id) as refused:
        start()

    assert refused.value.job_id == job_id
    assert find_live_job(RUN) == get_job(job_id)


def test_the_database_itself_refuses_a_second_live_job() -> None:
    prepare()
    row = RollbackJob.objects.get(pk=start())
    row.pk = "job_other"

    with pytest.raises(IntegrityError), transaction.atomic():
        row.save(force_insert=True)


def test_a_foreground_rollback_takes_over_from_a_job_that_only_waits() -> None:
    downstream = prepare()
    job_id = start()

    report = roll_back(downstream=downstream)
    late = execute(job_id, downstream)

    assert report.is_complete
    assert (late.state, len(downstream.requests)) == (JobState.FAILED, 1)
    assert (late.error or "").startswith("taken over by job_")


def test_a_running_job_keeps_every_other_off() -> None:
    downstream = prepare()
    claim_job(job_id=start(), worker="w", now=START)

    with pytest.raises(RollbackRunning):
        roll_back(downstream=downstream)
    with pytest.raises(RollbackRunning):
        start()

    assert downstream.requests == []


def test_two_rollbacks_at_once_undo_once_and_tell_the_other(db: Database) -> None:
    downstream = prepare(count=3)
    outcomes: list[str] = []

    def run() -> None:
        try:
            roll_back(downstream=downstream)
            outcomes.append("done")
        except RollbackRunning:
            outcomes.append("told")
        finally:
            connections.close_all()

    threads = [Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert set(outcomes) <= {"done", "told"}
    assert "done" in outcomes
    assert downstream.undone == {"o0": 1, "o1": 1, "o2": 1}


def test_an_expired_job_is_taken_over(abandon: Callable[[], None]) -> None:
    downstream = prepare()
    claim_job(job_id=start(), worker="dead", now=START)
    abandon()

    report = roll_back(downstream=downstream)

    assert report.is_complete
    assert RollbackJob.objects.filter(state=JobState.FAILED).count() == 1


def test_an_executor_that_lost_its_fence_writes_and_sends_nothing(abandon: Callable[[], None]) -> None:
    class Slow(Downstream):
        """Its first undo takes so long that another executor takes the run over meanwhile."""

        def compensate(self, call: Any) -> Any:
            answer = super().compensate(call)
            if len(self.requests) == 1:
                abandon()
                quick.state = self.state
                reports.append(roll_back(downstream=quick))
            return answer

    reports: list[Any] = []
    quick = Downstream()
    slow = Slow()
    make_run()
    order(downstream=slow, snapshot=shop(cancel={"effect": "idempotent"}), count=2)
    job_id = start()

    job = execute(job_id, slow)

    assert reports[0].is_complete
    assert len(slow.requests) == 1
    assert (job.state, job.report) == (JobState.FAILED, None)
    assert kinds().count("compensated") == 2
    assert kinds().count("rollback_finished") == 1


def test_a_foreground_rollback_that_lost_its_fence_says_so(abandon: Callable[[], None]) -> None:
    class Slow(Downstream):
        def compensate(self, call: Any) -> Any:
            answer = super().compensate(call)
            abandon()
            roll_back(downstream=Downstream(state=self.state))
            return answer

    slow = Slow()
    make_run()
    order(downstream=slow, snapshot=shop(cancel={"effect": "idempotent"}))

    with pytest.raises(FenceLost):
        roll_back(downstream=slow)


def test_a_bug_after_the_fence_was_lost_changes_nothing(abandon: Callable[[], None]) -> None:
    class Broken(Downstream):
        def compensate(self, call: Any) -> Any:
            abandon()
            roll_back(downstream=Downstream(state=self.state))
            raise ZeroDivisionError("a bug")

    downstream = Broken()
    make_run()
    order(downstream=downstream, snapshot=shop(cancel={"effect": "idempotent"}))

    with pytest.raises(ZeroDivisionError):
        roll_back(downstream=downstream)

    assert state_of() is StepState.COMPENSATED
    assert kinds().count("rollback_finished") == 1


def test_a_step_that_was_settled_by_hand_meanwhile_is_left_alone(abandon: Callable[[], None]) -> None:
    class Calling(Downstream):
        """While its first undo runs, somebody cancels the other order and tells so under the ledger's own rules."""

        def compensate(self, call: Any) -> Any:
            if call.step == 1:
                with durable():
                    compensate_by_hand(
                        run=lock_run(RUN),
                        number=0,
                        read_back=ReadBack.NOT_DECLARED,
                        note="cancelled on the phone",
                        data={},
                        actor=OPERATOR,
                        now=START,
                    )
            return super().compensate(call)

    downstream = Calling()
    make_run()
    order(downstream=downstream, snapshot=shop(), count=2)

    report = roll_back(downstream=downstream)

    assert [call.step for call in downstream.requests] == [1]
    assert report.to_json()["by_hand"] == [0]


def test_the_lease_covers_the_call_it_is_renewed_for() -> None:
    class Watching(Downstream):
        def compensate(self, call: Any) -> Any:
            row = RollbackJob.objects.get(state=JobState.RUNNING)
            before.append((row.lease_until_ms, call.timeout_ms))
            return super().compensate(call)

    before: list[Any] = []
    downstream = Watching()
    make_run()
    order(downstream=downstream, snapshot=shop(timeout_ms="10m"))

    roll_back(downstream=downstream)

    lease_until_ms, timeout_ms = before[0]
    assert timeout_ms == 600_000
    assert lease_until_ms > database_now_ms() + timeout_ms


def test_new_calls_are_blocked_while_a_rollback_works() -> None:
    class Calling(Downstream):
        def compensate(self, call: Any) -> Any:
            try:
                order(downstream=self, snapshot=snapshot)
            except CallBlocked as blocked:
                codes.extend(violation.code.value for violation in blocked.violations)
            return super().compensate(call)

    codes: list[str] = []
    downstream, snapshot = Calling(), shop()
    make_run()
    order(downstream=downstream, snapshot=snapshot)

    roll_back(downstream=downstream)

    assert codes == ["run_rolling_back"]


def is_call_blocked(downstream: Downstream) -> bool:
    """Try a call and say whether nothing but the rollback spoke against it."""
    try:
        order(downstream=downstream, snapshot=shop())
    except CallBlocked as blocked:
        return [violation.code for violation in blocked.violations] == ["run_rolling_back"]
    return False


@pytest.mark.parametrize("mode", ["enforce", "observe"])
def test_new_calls_are_blocked_while_a_rollback_waits(mode: str) -> None:
    downstream = Downstream()
    make_run(mode=mode)
    order(downstream=downstream, snapshot=shop())
    job_id = start()

    assert is_call_blocked(downstream)

    execute(job_id, downstream)
    assert not is_call_blocked(downstream)
    assert [kind for kind in kinds() if kind.startswith("rollback")] == [
        "rollback_queued",
        "rollback_started",
        "rollback_finished",
    ]


def test_a_verification_that_waits_blocks_no_calls() -> None:
    downstream = prepare()
    start_verification(run_id=RUN, actor=OPERATOR, now=START)

    assert not is_call_blocked(downstream)


def test_a_refused_start_blocks_no_calls() -> None:
    downstream = prepare()
    with pytest.raises(PlanStale):
        start(digest="0" * 64)

    assert not is_call_blocked(downstream)


def end_superseded(downstream: Downstream, job_id: str) -> None:
    roll_back(downstream=downstream)


def end_superseded_by_a_process_that_died(downstream: Downstream, job_id: str) -> None:
    downstream.faults.append(Fault.KILLED_BEFORE)
    with pytest.raises(Killed):
        roll_back(downstream=downstream)
    RollbackJob.objects.filter(state=JobState.RUNNING).update(lease_until_ms=0)
    recover_abandoned_jobs(now=LATER)


def end_abandoned_in_the_queue(downstream: Downstream, job_id: str) -> None:
    RollbackJob.objects.filter(pk=job_id).update(enqueues=MOST_ENQUEUES)
    recover_abandoned_jobs(now=LATER)


def end_broken_down(downstream: Downstream, job_id: str) -> None:
    class Broken(Downstream):
        def compensate(self, call: Any) -> Any:
            raise ZeroDivisionError("a bug")

    with pytest.raises(ZeroDivisionError):
        execute(job_id, Broken())


ENDS = (
    end_superseded,
    end_superseded_by_a_process_that_died,
    end_abandoned_in_the_queue,
    end_broken_down,
)


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
def test_calls_pass_again_however_a_queued_rollback_ends(end: Callable[[Downstream, str], None]) -> None:
    downstream = Downstream()
    make_run(mode="observe")
    make_call(downstream=downstream, snapshot=shop(), tool="shop.unknown")
    order(downstream=downstream, snapshot=shop())
    job_id = start()
    assert is_call_blocked(downstream)

    end(downstream, job_id)

    assert find_live_job(RUN) is None
    assert not is_call_blocked(downstream)


def verify_in_the_foreground(downstream: Downstream) -> None:
    verify_run(run_id=RUN, tools=downstream.tools, actor=OPERATOR, clock=Ticking())


def settle_by_hand(downstream: Downstream) -> None:
    resolve(run_id=RUN, number=2, status="compensated", note="by phone", actor=OPERATOR, clock=Ticking())


def roll_back_less(downstream: Downstream) -> None:
    roll_back(downstream=downstream, options=RollbackOptions(selection=Selection(steps=(0,))))


def roll_back_with_less(downstream: Downstream) -> None:
    roll_back(downstream=downstream)


LESSER: tuple[tuple[Callable[[Downstream], None], dict[str, Any]], ...] = (
    (verify_in_the_foreground, {}),
    (settle_by_hand, {}),
    (roll_back_less, {}),
    (roll_back_with_less, {"closes": True}),
    (roll_back_with_less, {"approves_compensations": True}),
    (roll_back_with_less, {"is_overwrite_allowed": True}),
    (roll_back_with_less, {"retrying": Retrying(attempts=3)}),
)


@pytest.mark.parametrize("is_abandoned", [False, True], ids=["queued", "abandoned by its worker"])
@pytest.mark.parametrize(("lesser", "options"), LESSER, ids=lambda part: getattr(part, "__name__", ""))
def test_a_rollback_gives_way_to_nothing_that_does_less(
    lesser: Callable[[Downstream], None], options: dict[str, Any], is_abandoned: bool
) -> None:
    downstream = Downstream()
    make_run(mode="observe")
    order(downstream=downstream, snapshot=shop(), count=2)
    make_call(downstream=downstream, snapshot=shop(), tool="shop.unknown")
    job_id = start(**options)
    if is_abandoned:
        claim_job(job_id=job_id, worker="w", now=START)
        RollbackJob.objects.filter(state=JobState.RUNNING).update(lease_until_ms=0)

    with pytest.raises(RollbackRunning):
        lesser(downstream)

    execute(job_id, downstream)
    assert (get_job(job_id).state, downstream.undone) == (JobState.DONE, {"o0": 1, "o1": 1})


def test_a_rollback_that_is_queued_again_keeps_calls_off() -> None:
    downstream = prepare()
    start()
    OrmQ.objects.all().delete()

    recover_abandoned_jobs(now=LATER)

    assert is_call_blocked(downstream)


def test_a_stale_plan_is_refused_when_it_is_queued() -> None:
    prepare()

    with pytest.raises(PlanStale):
        start(digest="0" * 64)

    assert find_live_job(RUN) is None


def test_a_plan_that_went_stale_in_the_queue_is_not_executed() -> None:
    downstream = prepare()
    lost = lose_call(snapshot=shop())
    job_id = start(digest=get_plan(run_id=RUN, now=START).digest)
    resolve(run_id=RUN, number=lost, status="failed", note="it is not there", actor=OPERATOR)

    with pytest.raises(PlanStale):
        execute(job_id, downstream)

    job = get_job(job_id)
    assert (job.state, downstream.requests, get_run(RUN).is_rolling_back) == (JobState.FAILED, [], False)


def test_a_verification_is_queued_and_done() -> None:
    downstream = prepare(is_read_back=True)
    downstream.is_readable = False
    roll_back(downstream=downstream)
    downstream.is_readable = True
    job = start_verification(run_id=RUN, actor=OPERATOR, now=START)

    done = execute(job.id, downstream)

    assert (done.kind, done.report is not None and done.report["complete"]) == (JobKind.VERIFY, True)


def test_what_does_not_exist_is_not_found() -> None:
    with pytest.raises(JobNotFound):
        get_job("job_none")
    with pytest.raises(RunNotFound):
        get_last_job("run_none")
    with pytest.raises(RunNotFound):
        run_foreground(run_id="run_none", tools=Downstream().tools, actor=OPERATOR)
    make_run()
    with pytest.raises(JobNotFound):
        get_last_job(RUN)


def test_a_settled_step_is_reported_and_not_undone() -> None:
    class Settling(Downstream):
        def compensate(self, call: Any) -> Any:
            resolve(
                run_id=RUN, number=lost, status="succeeded", note="it is there", actor=OPERATOR, result={"id": "o1"}
            )
            return super().compensate(call)

    downstream, snapshot = Settling(), shop()
    make_run()
    order(downstream=downstream, snapshot=snapshot)
    lost = lose_call(snapshot=snapshot)

    data = roll_back(downstream=downstream).to_json()

    assert (data["compensated"], data["unresolved"], data["complete"]) == ([0], [lost], False)
    assert next(entry["reason"] for entry in data["steps"]) == "settled during the rollback"
    assert state_of(lost) is StepState.SUCCEEDED
