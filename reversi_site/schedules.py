"""The jobs that run on a schedule, who claims them, and what each does (D31).

The list is fixed here and nothing in the database can name a function. A ticker claims a due row by compare-and-set
on the database's clock and enqueues the job in the same transaction: of two tickers one wins. A job that still waits
in the queue is not enqueued again until so much time has passed that it must have been lost.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.conf import settings
from django.db.models import ExpressionWrapper, F, IntegerField, Q, QuerySet

from reversi_site.dispatch import enqueue_scheduled_job
from reversi_site.kit.clock import DatabaseNowMs
from reversi_site.kit.transactions import durable
from reversi_site.models import Heartbeat, Schedule

LOST_AFTER_MS = 60_000
HEARTBEAT_RED_MS = 3 * 60_000


class Job(StrEnum):
    """What can be scheduled."""

    ANSWER_PURGE = "answer_purge"
    APPROVAL_DEADLINES = "approval_deadlines"
    HEARTBEAT = "heartbeat"
    JOB_RECOVERY = "job_recovery"
    TIMEOUT_SWEEP = "timeout_sweep"


@dataclass(frozen=True, slots=True)
class JobKind:
    """A job's usual interval and what it does at a given time."""

    interval_ms: int
    run: Callable[[datetime], object]


@dataclass(frozen=True, slots=True)
class ScheduleRecord:
    """A schedule as it stands; `late_ms` is how long past its time it is, 0 when it is not."""

    job: str
    interval_ms: int
    is_on: bool
    late_ms: int
    last_run_at: datetime | None
    last_error: str


def _beat(now: datetime) -> None:
    host = socket.gethostname()
    with durable():
        if not Heartbeat.objects.filter(host=host).update(beaten_ms=DatabaseNowMs()):
            Heartbeat.objects.bulk_create([Heartbeat(host=host, beaten_ms=DatabaseNowMs())], ignore_conflicts=True)


def _sweep(now: datetime) -> int:
    from approvals.operations.sweep import sweep_timeouts

    return sweep_timeouts(now=now, grace_ms=settings.SWEEP_GRACE_MS)


def _recover(now: datetime) -> int:
    from rollback.operations.recovery import recover_abandoned_jobs

    return recover_abandoned_jobs(now=now)


def _purge_answers(now: datetime) -> int:
    from ledger.operations.idempotency import purge_answers

    return purge_answers(now=now)


def _end_approvals(now: datetime) -> int:
    from approvals.operations.approvals import expire_approvals

    return expire_approvals(now=now)


JOBS: Mapping[Job, JobKind] = {
    Job.ANSWER_PURGE: JobKind(60 * 60_000, _purge_answers),
    Job.APPROVAL_DEADLINES: JobKind(30_000, _end_approvals),
    Job.HEARTBEAT: JobKind(30_000, _beat),
    Job.JOB_RECOVERY: JobKind(30_000, _recover),
    Job.TIMEOUT_SWEEP: JobKind(30_000, _sweep),
}


def ensure_schedules() -> None:
    """Give every job of the list its row; existing rows keep what an operator set."""
    rows = [Schedule(job=job.value, interval_ms=kind.interval_ms) for job, kind in JOBS.items()]
    with durable():
        Schedule.objects.bulk_create(rows, ignore_conflicts=True)


def enqueue_due_jobs() -> Sequence[Job]:
    """Claim and enqueue what is due; returns what this caller won."""
    due = _due_rows().filter(next_run_ms__lte=DatabaseNowMs()).values_list("job", "next_run_ms")
    return [Job(job) for job, seen in due if _claim(job, seen)]


def _due_rows() -> QuerySet[Schedule]:
    lost = ExpressionWrapper(DatabaseNowMs() - LOST_AFTER_MS, output_field=IntegerField())
    waits_no_more = Q(queued_ms__isnull=True) | Q(queued_ms__lt=lost)
    return Schedule.objects.filter(waits_no_more, is_on=True, job__in=[job.value for job in JOBS])


def _claim(job: str, seen: int) -> bool:
    following = ExpressionWrapper(DatabaseNowMs() + F("interval_ms"), output_field=IntegerField())
    with durable():
        claimed = _due_rows().filter(job=job, next_run_ms=seen)
        if not claimed.update(next_run_ms=following, queued_ms=DatabaseNowMs()):
            return False
        enqueue_scheduled_job(job)
    return True


def run_scheduled_job(*, job: str, now: datetime) -> None:
    """Do a job of the list and write down how it went; the queue may deliver it twice, so jobs must not mind."""
    kind = JOBS[Job(job)]
    with durable():
        Schedule.objects.filter(job=job).update(queued_ms=None)
    error = "it did not finish"
    try:
        kind.run(now)
        error = ""
    except Exception as failure:
        error = f"{type(failure).__name__}: {failure}"
        raise
    finally:
        with durable():
            Schedule.objects.filter(job=job).update(last_run_at=now, last_error=error)


def list_schedules() -> Sequence[ScheduleRecord]:
    """Return every schedule, by name."""
    late = ExpressionWrapper(DatabaseNowMs() - F("next_run_ms"), output_field=IntegerField())
    rows = Schedule.objects.annotate(late_ms=late).order_by("job")
    return [
        ScheduleRecord(
            job=row.job,
            interval_ms=row.interval_ms,
            is_on=row.is_on,
            late_ms=max(0, row.late_ms) if row.is_on else 0,
            last_run_at=row.last_run_at,
            last_error=row.last_error,
        )
        for row in rows
    ]


def heartbeat_age_ms() -> int | None:
    """Return how long ago any worker ran a job, by the database's clock; None when none ever did."""
    age = ExpressionWrapper(DatabaseNowMs() - F("beaten_ms"), output_field=IntegerField())
    return Heartbeat.objects.annotate(age_ms=age).order_by("age_ms").values_list("age_ms", flat=True).first()
