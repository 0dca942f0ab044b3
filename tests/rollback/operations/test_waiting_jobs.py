"""Rollbacks that need a session which only one gateway holds: left to it, never given up, and never imitated."""

import threading
from datetime import timedelta
from typing import Any

import anyio
import anyio.to_thread
import pytest

from gateway.journal import Journal
from gateway.mcp.live_jobs import do_live_jobs, do_waiting_jobs
from ledger.core.statuses import StepState
from ledger.queries import get_run
from rollback.core.errors import RollbackRunning
from rollback.core.jobs import PATIENCE, JobState
from rollback.core.options import RollbackOptions
from rollback.core.ports import Nobody, Tools
from rollback.core.report import Report
from rollback.models import RollbackJob
from rollback.operations.execution import execute_job, run_foreground
from rollback.operations.jobs import start_rollback
from rollback.operations.recovery import MOST_ENQUEUES, recover_abandoned_jobs
from rollback.queries import get_job, list_jobs_waiting_for
from tests.rollback.downstream import Downstream
from tests.rollback.journal import OPERATOR, RUN, START, Naps, Ticking, kinds, make_run, order, shop, state_of

pytestmark = pytest.mark.usefixtures("db")

# Every step's upstream is held by a gateway, and by nobody else.
ELSEWHERE = Tools(Nobody(), upstreams=lambda upstream: Tools(Nobody(), waits_for=upstream))


def prepare() -> tuple[Downstream, str]:
    downstream = Downstream()
    make_run()
    order(downstream=downstream, snapshot=shop(), count=2)
    return downstream, start_rollback(run_id=RUN, actor=OPERATOR, now=START, options=RollbackOptions()).id


def work(job_id: str, tools: Tools) -> Any:
    return execute_job(job_id=job_id, tools=tools, clock=Ticking(), sleep=Naps())


def test_a_worker_leaves_the_job_to_the_gateway_that_holds_the_session() -> None:
    downstream, job_id = prepare()

    job = work(job_id, ELSEWHERE)

    assert (job.state, job.waiting_for) == (JobState.QUEUED, "shop")
    assert (downstream.requests, state_of(0)) == ([], StepState.SUCCEEDED)
    assert "rollback_started" not in kinds()


def test_a_waiting_job_is_looked_at_again_and_never_given_up() -> None:
    _, job_id = prepare()
    work(job_id, ELSEWHERE)
    RollbackJob.objects.update(enqueues=MOST_ENQUEUES, claims=99)

    recovered = recover_abandoned_jobs(now=START + timedelta(hours=9))

    assert (recovered, get_job(job_id).state) == (1, JobState.QUEUED)
    assert RollbackJob.objects.get().enqueues == MOST_ENQUEUES


def test_a_job_whose_session_is_no_longer_live_is_done_by_any_worker() -> None:
    downstream, job_id = prepare()
    work(job_id, ELSEWHERE)

    job = work(job_id, downstream.tools)

    assert (job.state, job.waiting_for) == (JobState.DONE, None)
    assert downstream.undone == {"o0": 1, "o1": 1}


def roll_back_elsewhere(after: timedelta = timedelta()) -> Report:
    return run_foreground(run_id=RUN, tools=ELSEWHERE, actor=OPERATOR, clock=Ticking(START + after), sleep=Naps())


@pytest.mark.parametrize("is_looked_at", [True, False], ids=["a worker left it", "no worker saw it yet"])
def test_a_waiting_job_is_not_taken_over_by_who_cannot_do_it(is_looked_at: bool) -> None:
    downstream, job_id = prepare()
    if is_looked_at:
        work(job_id, ELSEWHERE)

    with pytest.raises(RollbackRunning, match=job_id) as refused:
        roll_back_elsewhere()

    assert ("waiting for the gateway that holds the session of shop" in str(refused.value)) is is_looked_at
    assert (work(job_id, downstream.tools).state, downstream.undone) == (JobState.DONE, {"o0": 1, "o1": 1})


def test_a_waiting_job_is_taken_over_by_who_reaches_everything() -> None:
    downstream, job_id = prepare()
    work(job_id, ELSEWHERE)

    report = run_foreground(run_id=RUN, tools=downstream.tools, actor=OPERATOR, clock=Ticking(), sleep=Naps())

    assert report.is_complete
    assert get_job(job_id).state is JobState.FAILED


def test_a_job_that_no_gateway_took_in_a_minute_gives_way() -> None:
    _, job_id = prepare()
    work(job_id, ELSEWHERE)

    report = roll_back_elsewhere(after=PATIENCE)

    assert get_job(job_id).state is JobState.FAILED
    assert not get_run(RUN).is_rolling_back
    assert not report.is_complete


def test_a_foreground_rollback_refuses_what_it_cannot_reach_and_says_for_whom_it_waits() -> None:
    make_run()
    order(downstream=Downstream(), snapshot=shop(), count=2)

    report = roll_back_elsewhere()

    failed = {line["step"]: line["error"] for line in report.to_json()["failed"]}
    assert failed == dict.fromkeys(
        (0, 1), "waiting for executor: the session of shop is live in its gateway, or has ended"
    )
    assert not report.is_complete


def test_the_gateway_does_the_jobs_that_wait_for_its_upstreams() -> None:
    downstream, job_id = prepare()
    work(job_id, ELSEWHERE)

    async def look(*upstreams: str) -> int:
        async with Journal.open() as journal:
            return await do_waiting_jobs(journal, downstream.tools, upstreams)

    assert anyio.run(look, "browser") == 0
    assert get_job(job_id).state is JobState.QUEUED
    assert anyio.run(look, "browser", "shop") == 1
    assert (get_job(job_id).state, downstream.undone) == (JobState.DONE, {"o0": 1, "o1": 1})
    assert list_jobs_waiting_for(["shop"]) == []


def test_a_gateway_that_ends_stops_behind_the_step_it_is_at_and_gives_the_run_back() -> None:
    downstream, job_id = prepare()
    work(job_id, ELSEWHERE)
    reached, let_go = threading.Event(), threading.Event()

    class Slow(Downstream):
        def compensate(self, call: Any) -> Any:
            reached.set()
            assert let_go.wait(30)
            return downstream.compensate(call)

    async def end_in_the_middle() -> None:
        async with Journal.open() as journal, anyio.create_task_group() as tasks:
            tasks.start_soon(do_waiting_jobs, journal, Slow().tools, ["shop"])
            await anyio.to_thread.run_sync(reached.wait, 30)
            tasks.cancel_scope.cancel()
            let_go.set()

    anyio.run(end_in_the_middle)

    job = get_job(job_id)
    assert (job.state, downstream.undone) == (JobState.FAILED, {"o1": 1})
    assert "the gateway ends" in (job.error or "")
    assert (state_of(1), state_of(0)) == (StepState.COMPENSATED, StepState.SUCCEEDED)
    assert not get_run(RUN).is_rolling_back


def test_a_gateway_without_live_upstreams_looks_for_nothing() -> None:
    async def look() -> None:
        async with Journal.open() as journal:
            await do_live_jobs(journal, lambda: ELSEWHERE, list)

    anyio.run(look)
