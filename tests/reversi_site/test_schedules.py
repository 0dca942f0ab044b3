from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.db import connection, connections
from django_q.models import OrmQ

from reversi_site import schedules
from reversi_site.kit.clock import database_now_ms
from reversi_site.models import Heartbeat, Schedule
from reversi_site.schedules import (
    JOBS,
    Job,
    enqueue_due_jobs,
    ensure_schedules,
    heartbeat_age_ms,
    list_schedules,
    run_scheduled_job,
)
from tests.databases import Database

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def queued() -> list[str]:
    return sorted(task.task["args"][0] for task in OrmQ.objects.all())


def test_ensure_schedules_keeps_what_an_operator_set(db: Database) -> None:
    ensure_schedules()
    Schedule.objects.filter(job=Job.HEARTBEAT).update(is_on=False, interval_ms=5_000)

    ensure_schedules()

    rows = {row.job: (row.is_on, row.interval_ms) for row in list_schedules()}
    assert rows[Job.HEARTBEAT] == (False, 5_000)
    assert rows.keys() == set(JOBS)


def test_enqueue_due_jobs_enqueues_each_due_job_once(db: Database) -> None:
    ensure_schedules()

    first, second = enqueue_due_jobs(), enqueue_due_jobs()

    assert sorted(first) == sorted(JOBS)
    assert list(second) == []
    assert queued() == sorted(JOBS)


def test_enqueue_due_jobs_leaves_what_is_off_or_not_due(db: Database) -> None:
    ensure_schedules()
    Schedule.objects.filter(job=Job.HEARTBEAT).update(is_on=False)
    Schedule.objects.filter(job=Job.JOB_RECOVERY).update(next_run_ms=database_now_ms() + 60_000)

    assert set(enqueue_due_jobs()) == set(Job) - {Job.HEARTBEAT, Job.JOB_RECOVERY}


def test_enqueue_due_jobs_does_not_pile_up_what_nobody_works_off(db: Database) -> None:
    ensure_schedules()
    enqueue_due_jobs()
    Schedule.objects.update(next_run_ms=0)

    assert list(enqueue_due_jobs()) == []


def test_enqueue_due_jobs_replaces_a_job_that_was_lost_in_the_queue(db: Database) -> None:
    ensure_schedules()
    long_ago = database_now_ms() - schedules.LOST_AFTER_MS - 1_000
    Schedule.objects.filter(job=Job.JOB_RECOVERY).update(next_run_ms=0, queued_ms=long_ago)
    Schedule.objects.exclude(job=Job.JOB_RECOVERY).update(is_on=False)

    assert list(enqueue_due_jobs()) == [Job.JOB_RECOVERY]


def test_enqueue_due_jobs_never_runs_what_a_row_names_beyond_the_list(db: Database) -> None:
    Schedule.objects.create(job="os.system", interval_ms=1)

    assert list(enqueue_due_jobs()) == []
    assert queued() == []


def test_two_tickers_at_once_enqueue_a_job_once(db: Database) -> None:
    ensure_schedules()
    barrier = threading.Barrier(4)
    won: list[Job] = []

    def tick() -> None:
        barrier.wait()
        try:
            won.extend(enqueue_due_jobs())
        finally:
            connections.close_all()

    threads = [threading.Thread(target=tick) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(won) == sorted(JOBS)
    assert queued() == sorted(JOBS)


def test_a_claim_whose_enqueueing_fails_is_taken_back(db: Database) -> None:
    ensure_schedules()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE django_q_ormq RENAME TO django_q_away")

    with pytest.raises(Exception, match="django_q_ormq"):
        enqueue_due_jobs()

    assert set(Schedule.objects.values_list("next_run_ms", "queued_ms")) == {(0, None)}


def test_run_scheduled_job_writes_down_when_it_ran(db: Database) -> None:
    ensure_schedules()
    enqueue_due_jobs()

    run_scheduled_job(job="heartbeat", now=NOW)

    row = Schedule.objects.get(job="heartbeat")
    assert (row.last_run_at, row.queued_ms, row.last_error) == (NOW, None, "")


def test_run_scheduled_job_writes_down_what_went_wrong(db: Database, swap: Callable[[str], None]) -> None:
    ensure_schedules()
    swap("reversi_site_heartbeat")

    with pytest.raises(Exception, match="reversi_site_heartbeat"):
        run_scheduled_job(job="heartbeat", now=NOW)

    assert "reversi_site_heartbeat" in Schedule.objects.get(job="heartbeat").last_error


@pytest.fixture
def swap() -> Callable[[str], None]:
    """Take a table away, as a database in trouble would."""

    def rename(table: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {table} RENAME TO {table}_away")

    return rename


def test_run_scheduled_job_refuses_a_job_beyond_the_list(db: Database) -> None:
    with pytest.raises(ValueError, match=r"os\.system"):
        run_scheduled_job(job="os.system", now=NOW)


def test_heartbeat_age_is_told_by_the_database(db: Database) -> None:
    assert heartbeat_age_ms() is None

    run_scheduled_job(job="heartbeat", now=NOW)
    run_scheduled_job(job="heartbeat", now=NOW)

    age = heartbeat_age_ms()
    assert age is not None
    assert 0 <= age < 60_000
    assert Heartbeat.objects.count() == 1
