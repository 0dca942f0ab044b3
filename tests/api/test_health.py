"""Signs of life."""

from __future__ import annotations

import pytest
from django.test import Client, override_settings

from reversi_site.kit.clock import SystemClock
from reversi_site.schedules import Job, ensure_schedules, run_scheduled_job
from tests.databases import NO_DATABASE, Database, point_default_at


def test_alive_and_ready_with_a_worker(db: Database) -> None:
    ensure_schedules()
    before = Client().get("/healthz").json()
    run_scheduled_job(job=Job.HEARTBEAT, now=SystemClock().now())

    assert before == {"status": "ok", "worker": "never seen"}
    assert Client().get("/healthz").json() == {"status": "ok", "worker": "ok"}
    assert Client().get("/readyz").json() == {"status": "ok", "checks": {"store": "ok", "keys": "ok"}, "worker": "ok"}


def test_alive_and_not_ready_without_tables(db: Database) -> None:
    with db.raw() as connection:
        connection.execute("DELETE FROM django_migrations WHERE app = 'ledger'")

    alive, ready = Client().get("/healthz"), Client().get("/readyz")

    assert (alive.status_code, ready.status_code) == (200, 503)
    assert ready.json()["checks"] == {"store": "not migrated", "keys": "ok"}


def test_alive_and_not_ready_without_a_database(tmp_path: object) -> None:
    unreachable = {"ENGINE": "django.db.backends.postgresql", "NAME": "x", "HOST": "127.0.0.1", "PORT": "1"}
    point_default_at({"USER": "x", "PASSWORD": "p-4711", "OPTIONS": {}, **unreachable})
    try:
        alive, ready = Client().get("/healthz"), Client().get("/readyz")
    finally:
        point_default_at(NO_DATABASE)

    assert (alive.status_code, alive.json()["worker"]) == (200, "unavailable")
    assert (ready.status_code, ready.json()["checks"]["store"]) == (503, "unavailable")
    assert b"4711" not in ready.content


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_signs_of_life_are_only_read(path: str) -> None:
    assert Client().post(path).status_code == 405


@override_settings(REVERSI_LEDGER_KEYS={"k1": b"x" * 32})
def test_keys_can_be_used(db: Database) -> None:
    assert Client().get("/readyz").json()["checks"]["keys"] == "ok"
