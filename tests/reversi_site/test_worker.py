"""A real worker: what it runs, and how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reversi_site.models import Heartbeat, Schedule
from reversi_site.schedules import JOBS, heartbeat_age_ms
from tests.databases import Database
from tests.reversi_site.conftest import Shell

PATIENCE_SECONDS = 60
POLL_SECONDS = 0.05

Worker = subprocess.Popen[str]


@contextmanager
def running(shell: Shell, db: Database) -> Iterator[Worker]:
    process = shell.start("worker", DATABASE_URL=db.url, REVERSI_DATA=os.environ["REVERSI_DATA"])
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def eventually(happened: Callable[[], bool]) -> bool:
    """Tell whether something happens before anybody would have lost patience."""
    ends_at = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < ends_at:
        if happened():
            return True
        time.sleep(POLL_SECONDS)
    return False


def members(group: int) -> list[int]:
    """The living processes of a session: what a worker left behind, if anything."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z" and int(fields[3]) == group:
            found.append(int(path.parent.name))
    return found


def test_a_heartbeat_travels_through_a_real_worker(db: Database, shell: Shell) -> None:
    with running(shell, db) as worker:
        came = eventually(lambda: heartbeat_age_ms() is not None)
        ran = eventually(lambda: Schedule.objects.filter(last_run_at__isnull=False).count() == len(JOBS))
        worker.send_signal(signal.SIGTERM)
        _, err = worker.communicate(timeout=60)

    assert came, err
    assert ran, err
    assert Heartbeat.objects.count() == 1
    assert set(Schedule.objects.values_list("last_error", flat=True)) == {""}
    assert worker.returncode == 0
    assert err.splitlines()[0] == "worker: ready"
    assert err.splitlines()[-1] == "worker: stopped"


@pytest.mark.parametrize("sends", ["SIGTERM to the main process", "SIGINT to the group", "SIGTERM to the group"])
def test_a_worker_stops_whole_however_it_is_told(sqlite_db: Database, shell: Shell, sends: str) -> None:
    number = signal.SIGINT if "SIGINT" in sends else signal.SIGTERM
    with running(shell, sqlite_db) as worker:
        assert eventually(lambda: heartbeat_age_ms() is not None)
        if "group" in sends:
            os.killpg(worker.pid, number)
        else:
            worker.send_signal(number)
        worker.communicate(timeout=60)

        assert worker.returncode == 0
        assert members(worker.pid) == []


def test_a_killed_worker_leaves_nobody_working(sqlite_db: Database, shell: Shell) -> None:
    with running(shell, sqlite_db) as worker:
        assert eventually(lambda: heartbeat_age_ms() is not None)
        assert len(members(worker.pid)) > 1

        worker.kill()
        worker.wait()

        assert eventually(lambda: members(worker.pid) == [])


def test_a_worker_whose_guard_died_ends_with_an_error(sqlite_db: Database, shell: Shell) -> None:
    with running(shell, sqlite_db) as worker:
        assert eventually(lambda: heartbeat_age_ms() is not None)
        children = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)
        _, err = worker.communicate(timeout=60)

        assert worker.returncode == 69
        assert err.splitlines()[-1].startswith("reversi: the worker's guard process died")
        assert eventually(lambda: members(worker.pid) == [])
