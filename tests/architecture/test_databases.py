"""The test databases themselves: isolated, committed for real, the same for threads and child processes."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import Group
from django.db import DatabaseError, connection, connections, transaction

from ledger.models import GovernanceEvent
from ledger.operations.governance import record_act
from reversi_site.kit.transactions import durable
from tests.databases import Database
from tests.no_database.base import NoDatabase
from tests.postgres import REPOSITORY, find_binaries
from tests.session import SERVER_LOCK, wait_until_free

COUNT_GROUPS = """
import django; django.setup()
from django.contrib.auth.models import Group
print(Group.objects.filter(name="seen").count()); Group.objects.create(name="answered")
"""

# Plays the process that controls a test run; it is killed before it can clean up.
CONTROLLER = """
import json, signal
from tests.postgres import session_server
from tests.session import SessionFolder
folder = SessionFolder()
print(json.dumps({"folder": str(folder.path), "url": session_server(folder.path)}), flush=True)
signal.pause()
"""


@pytest.mark.parametrize("turn", ["first", "second"])
def test_database_holds_no_rows_of_another_test(db: Database, turn: str) -> None:
    assert not Group.objects.filter(name="left behind").exists()

    with transaction.atomic(durable=True):
        Group.objects.create(name="left behind")

    assert Group.objects.filter(name="left behind").count() == 1


def test_database_has_the_engine_it_names(db: Database) -> None:
    assert connection.vendor == {"sqlite": "sqlite", "postgres": "postgresql"}[db.engine]


def test_database_commits_for_other_connections(db: Database) -> None:
    Group.objects.create(name="committed")

    with_own_driver = db.raw().execute("SELECT count(*) FROM auth_group WHERE name = 'committed'").fetchone()

    assert with_own_driver == (1,)


def test_database_is_shared_with_threads(db: Database) -> None:
    def create_in_thread() -> None:
        Group.objects.create(name="from a thread")
        connections.close_all()

    thread = Thread(target=create_in_thread)
    thread.start()
    thread.join()

    assert Group.objects.filter(name="from a thread").exists()


def test_database_is_shared_with_child_processes(db: Database) -> None:
    Group.objects.create(name="seen")

    child = subprocess.run(
        [sys.executable, "-c", COUNT_GROUPS], env=db.env(), capture_output=True, text=True, check=False
    )

    assert (child.stdout.strip(), child.returncode) == ("1", 0), child.stderr
    assert Group.objects.filter(name="answered").exists()


def test_database_keeps_the_triggers_of_the_schema(db: Database) -> None:
    with durable():
        record_act(kind="halt_added", actor="operator", data={}, now=datetime(2026, 11, 30, tzinfo=UTC))

    with pytest.raises(DatabaseError, match="append-only"):
        GovernanceEvent.objects.update(actor="somebody else")


def test_database_left_in_an_open_transaction_is_put_away(db: Database) -> None:
    # What matters is the next test: nothing of this block may reach it.
    transaction.set_autocommit(False)
    Group.objects.create(name="left behind")


def test_database_is_refused_without_a_fixture() -> None:
    with pytest.raises(NoDatabase, match="ask for the fixture"):
        Group.objects.exists()
    with pytest.raises(NoDatabase, match="ask for the fixture"), transaction.atomic():
        raise AssertionError("the block must not be entered")


@pytest.mark.skipif(find_binaries() is None, reason="PostgreSQL: no server programs found")
def test_server_stops_when_the_run_is_killed() -> None:
    controller = subprocess.Popen([sys.executable, "-c", CONTROLLER], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    with controller:
        assert controller.stdout is not None
        said = json.loads(controller.stdout.readline())
        folder, address = Path(said["folder"]), urlsplit(said["url"])
        place = (str(address.hostname), int(address.port or 0))
        socket.create_connection(place).close()

        controller.send_signal(signal.SIGKILL)

    wait_until_free(folder / SERVER_LOCK)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(place)
    assert not folder.exists()
