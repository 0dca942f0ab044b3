"""Pick up jobs that nobody works on any more: put them on the queue again, or end them (D31).

A job of a worker is enqueued again, a bounded number of times. A job of a foreground process is ended: a worker may
reach other tools than the person who started it. Ending gives the run back to its agent.

Each job is recovered by itself: one whose run is damaged is logged and tried again the next time, and the others do
not wait for it.
"""

from __future__ import annotations

import logging
from datetime import datetime

from django.db import Error as AnyDatabaseError
from django.db.models import Q, QuerySet

from ledger.operations.journal import lock_run
from ledger.operations.runs import release_run, take_run
from reversi_sdk.errors import ReversiError
from reversi_site.kit.clock import DatabaseNowMs
from reversi_site.kit.transactions import durable
from rollback.core.jobs import PATIENCE, JobState
from rollback.dispatch import enqueue_job
from rollback.models import RollbackJob
from rollback.operations.jobs import journaled
from rollback.queries import load_steps

MOST_ENQUEUES = 20
MOST_CLAIMS = 5

logger = logging.getLogger(__name__)


def recover_abandoned_jobs(*, now: datetime) -> int:
    """Enqueue again or end every job that waits too long or whose lease ran out; returns how many that were."""
    return sum(_try_to_recover(job_id, now) for job_id in list(_abandoned(now).values_list("pk", flat=True)))


def _try_to_recover(job_id: str, now: datetime) -> bool:
    try:
        return _recover(job_id, now)
    except (AnyDatabaseError, ReversiError) as error:
        logger.error("job %s could not be recovered: %s", job_id, error)
        return False


def _abandoned(now: datetime) -> QuerySet[RollbackJob]:
    return RollbackJob.objects.filter(_left_alone(now))


def _left_alone(now: datetime) -> Q:
    was_asked_for_long_ago = Q(enqueued_at__isnull=True) | Q(enqueued_at__lt=now - PATIENCE)
    expired = Q(state=JobState.RUNNING, lease_until_ms__lt=DatabaseNowMs())
    return (Q(state=JobState.QUEUED) | expired) & was_asked_for_long_ago


def _recover(job_id: str, now: datetime) -> bool:
    with durable():
        run_id = RollbackJob.objects.values_list("run_id", flat=True).get(pk=job_id)
        lock_run(run_id)
        row = RollbackJob.objects.filter(_left_alone(now), pk=job_id).first()
        if row is None:
            return False
        # One that waits for a gateway is looked at again, however often, and never given up.
        is_waiting = row.state == JobState.QUEUED and row.waiting_for is not None
        is_hopeless = row.is_foreground or row.claims >= MOST_CLAIMS or row.enqueues >= MOST_ENQUEUES
        if is_hopeless and not is_waiting:
            _abandon(row, now)
        else:
            enqueues = row.enqueues if is_waiting else row.enqueues + 1
            RollbackJob.objects.filter(pk=job_id).update(enqueues=enqueues, enqueued_at=now)
            enqueue_job(job_id)
        return True


def _abandon(row: RollbackJob, now: datetime) -> None:
    why = "its process died" if row.is_foreground else "no worker could finish it"
    report = load_steps(row.run_id).report(now=now).to_json()
    RollbackJob.objects.filter(pk=row.pk).update(state=JobState.FAILED, ended_at=now, error=why, report=report)
    fence = take_run(run_id=row.run_id, actor=row.requested_by, now=now)
    release_run(
        run_id=row.run_id,
        fence=fence,
        actor=row.requested_by,
        now=now,
        closes=False,
        report=journaled(row.pk, report),
    )
