"""Jobs that nobody works on any more (D31)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import override_settings
from django_q.models import OrmQ

from ledger.queries import get_run
from rollback.core.jobs import JobRecord, JobState
from rollback.core.ports import Tools
from rollback.models import RollbackJob
from rollback.operations import recovery
from rollback.operations.jobs import claim_job, start_rollback
from rollback.operations.recovery import MOST_CLAIMS, MOST_ENQUEUES, recover_abandoned_jobs
from rollback.queries import get_job, get_last_job
from rollback.tasks import run_job
from tests.rollback.downstream import Downstream, Fault, Killed
from tests.rollback.journal import IDEMPOTENT, OPERATOR, RUN, START, make_run, order, roll_back, shop

pytestmark = pytest.mark.usefixtures("db")

SOON = START + timedelta(seconds=30)
LATER = START + timedelta(minutes=5)
world = Downstream()


def reach_the_shop() -> Tools:
    """What `settings.REVERSI_TOOLS` names in these tests."""
    return world.tools


@pytest.fixture(autouse=True)
def fresh_world() -> None:
    world.__init__()  # type: ignore[misc]


def prepare() -> None:
    make_run()
    order(downstream=world, snapshot=shop(cancel=IDEMPOTENT), count=2)


def start() -> JobRecord:
    return start_rollback(run_id=RUN, actor=OPERATOR, now=START)


def test_a_task_finds_the_tools_of_the_deployment() -> None:
    prepare()
    job = start()

    with override_settings(REVERSI_TOOLS=f"{__name__}.reach_the_shop"):
        run_job(job.id)

    assert get_job(job.id).state is JobState.DONE
    assert world.undone == {"o0": 1, "o1": 1}


def test_a_job_whose_worker_died_is_enqueued_again_and_finished(abandon: Callable[[], None]) -> None:
    prepare()
    world.faults.append(Fault.KILLED_AFTER)
    job = start()
    with override_settings(REVERSI_TOOLS=f"{__name__}.reach_the_shop"):
        with pytest.raises(Killed):
            run_job(job.id)
        abandon()

        recovered = recover_abandoned_jobs(now=LATER)
        run_job(job.id)

    assert (recovered, OrmQ.objects.count()) == (1, 2)
    assert get_job(job.id).state is JobState.DONE
    assert (get_job(job.id).report or {})["complete"]
    assert not get_run(RUN).is_rolling_back


def test_a_job_whose_task_was_lost_is_enqueued_again() -> None:
    prepare()
    start()
    OrmQ.objects.all().delete()

    assert recover_abandoned_jobs(now=LATER) == 1
    assert OrmQ.objects.count() == 1


def test_a_job_that_was_just_asked_for_is_left_alone() -> None:
    prepare()
    start()

    assert recover_abandoned_jobs(now=SOON) == 0
    assert OrmQ.objects.count() == 1


def test_a_job_under_way_is_left_alone() -> None:
    prepare()
    claim_job(job_id=start().id, worker="w", now=START)

    assert recover_abandoned_jobs(now=LATER) == 0


@pytest.mark.parametrize("limit", [{"claims": MOST_CLAIMS}, {"enqueues": MOST_ENQUEUES}], ids=["claims", "enqueues"])
def test_a_job_that_nobody_can_finish_is_ended(limit: dict[str, int], abandon: Callable[[], None]) -> None:
    prepare()
    job = start()
    claim_job(job_id=job.id, worker="w", now=START)
    RollbackJob.objects.filter(pk=job.id).update(**limit)
    abandon()

    recover_abandoned_jobs(now=LATER)

    ended = get_job(job.id)
    assert (ended.state, ended.error) == (JobState.FAILED, "no worker could finish it")
    assert not get_run(RUN).is_rolling_back


def test_a_foreground_job_whose_process_died_is_ended_and_its_run_given_back(abandon: Callable[[], None]) -> None:
    prepare()
    world.faults.append(Fault.KILLED_BEFORE)
    with pytest.raises(Killed):
        roll_back(downstream=world)
    abandon()

    recover_abandoned_jobs(now=LATER)

    job = get_last_job(RUN)
    assert (job.state, job.error, OrmQ.objects.count()) == (JobState.FAILED, "its process died", 0)
    assert (job.report or {})["complete"] is False
    assert not get_run(RUN).is_rolling_back
    assert roll_back(downstream=world).is_complete


def test_a_broken_run_does_not_keep_the_others_from_recovery(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A migration in the same process may have switched off the loggers that were made before it.
    monkeypatch.setattr(recovery.logger, "disabled", False)
    for run_id in ("run_a", "run_broken", "run_c"):
        make_run(run_id=run_id)
        start_rollback(run_id=run_id, actor=OPERATOR, now=START)
    OrmQ.objects.all().delete()

    def failing(execute: Any, sql: str, params: Any, *rest: Any) -> Any:
        if "run_broken" in str(params):
            raise OperationalError("database disk image is malformed")
        return execute(sql, params, *rest)

    with connection.execute_wrapper(failing):
        recovered = recover_abandoned_jobs(now=LATER)

    assert (recovered, OrmQ.objects.count()) == (2, 2)
    assert "could not be recovered: database disk image is malformed" in caplog.text
    assert recover_abandoned_jobs(now=LATER) == 1
