from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from reversi_site.store import StoreNotMigrated, StoreTooNew, migrate_store, open_store, pending_migrations
from tests.databases import Database
from tests.reversi_site.conftest import Shell

FIRST_USERS = 6


def test_first_use_makes_a_private_folder_with_keys_and_tables(shell: Shell) -> None:
    done = shell.run("--data", "data", "runs", "list")

    assert (done.returncode, done.stdout) == (0, "no runs\n")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (shell.folder / "data").iterdir()}
    assert stat.S_IMODE((shell.folder / "data").stat().st_mode) == 0o700
    assert {name: modes[name] for name in ("secret.key", "ledger.keys", "calls.key")} == {
        "secret.key": 0o600,
        "ledger.keys": 0o600,
        "calls.key": 0o600,
    }


def test_first_use_by_several_processes_at_once_makes_one_store(shell: Shell) -> None:
    processes = [shell.start("runs", "open", "--id", f"r{number}") for number in range(FIRST_USERS)]

    ended = [(process.communicate(timeout=100), process.returncode) for process in processes]

    assert [code for _, code in ended] == [0] * FIRST_USERS, ended
    listed = shell.run("runs", "list").stdout
    assert all(f"r{number} " in listed for number in range(FIRST_USERS))
    assert shell.run("ledger", "verify").returncode == 0


def test_the_store_syncs_every_commit_and_waits_for_locks(sqlite_db: Database) -> None:
    with connection.cursor() as cursor:
        values = [cursor.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]

    assert values == ["wal", 2]


def test_a_store_of_an_earlier_version_is_brought_up_to_date_on_use(shell: Shell) -> None:
    shell.run("runs", "open", "--id", "r")
    with closing(sqlite3.connect(shell.folder / "reversi-data" / "reversi.sqlite3")) as store, store:
        store.execute("DROP TABLE reversi_site_heartbeat")
        store.execute("DROP TABLE reversi_site_schedule")
        store.execute("DELETE FROM django_migrations WHERE app = 'reversi_site'")

    done = shell.run("runs", "list")

    assert done.returncode == 0
    assert done.stdout.startswith("r ")
    assert shell.run("migrate").stdout == "the store is up to date\n"


def test_a_store_of_a_later_version_is_refused(db: Database) -> None:
    MigrationRecorder(connection).record_applied("ledger", "0099_later")

    with pytest.raises(StoreTooNew, match=r"ledger\.0099_later"):
        open_store()


def test_a_shared_database_is_changed_by_migrate_only(postgres_db: Database) -> None:
    with without_our_tables():
        with pytest.raises(StoreNotMigrated, match="reversi migrate"):
            open_store()

        applied = migrate_store()

    assert applied == ["reversi_site.0001_initial"]
    assert pending_migrations() == []
    open_store()


def test_an_empty_shared_database_is_set_up_on_first_use_by_whoever_comes_first(
    postgres_db: Database, shell: Shell
) -> None:
    server = postgres_db.url.rpartition("/")[0]
    postgres_db.raw().execute("CREATE DATABASE first_use TEMPLATE template0")
    try:
        processes = [shell.start("runs", "list", DATABASE_URL=f"{server}/first_use") for _ in range(3)]
        ended = [(process.communicate(timeout=100), process.returncode) for process in processes]
    finally:
        postgres_db.raw().execute("DROP DATABASE first_use WITH (FORCE)")

    assert [code for _, code in ended] == [0, 0, 0], ended


def test_migrating_at_once_applies_each_migration_once(postgres_db: Database, shell: Shell) -> None:
    with without_our_tables():
        processes = [shell.start("migrate", DATABASE_URL=postgres_db.url) for _ in range(3)]
        ended = [(process.communicate(timeout=100), process.returncode) for process in processes]

    assert [code for _, code in ended] == [0, 0, 0], ended
    outputs = sorted(out for (out, _), _ in ended)
    assert outputs == [
        "reversi_site.0001_initial\n1 migration applied\n",
        "the store is up to date\n",
        "the store is up to date\n",
    ]


@contextmanager
def without_our_tables() -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE reversi_site_heartbeat")
        cursor.execute("DROP TABLE reversi_site_schedule")
        cursor.execute("DELETE FROM django_migrations WHERE app = 'reversi_site'")
    yield


def test_a_folder_on_a_network_file_system_is_refused(shell: Shell, tmp_path: Path) -> None:
    script = (
        "import sys; from reversi_site import file_systems; from pathlib import Path;"
        f"file_systems.MOUNTS = Path({str(tmp_path / 'mounts')!r});"
        "from reversi_site.cli import main; sys.exit(main(['runs', 'list']))"
    )
    (tmp_path / "mounts").write_text("22 1 0:40 / / rw - nfs4 files:/export rw\n")

    done = subprocess.run(
        [sys.executable, "-c", script], cwd=shell.folder, env=shell.env(), capture_output=True, text=True, check=False
    )

    assert done.returncode == 69
    assert "is on a network file system (nfs4)" in done.stderr
    assert not list(shell.folder.glob("reversi-data/*.sqlite3"))


@pytest.mark.parametrize("command", ["runs list", "migrate", "doctor"])
def test_a_database_without_its_driver_is_unavailable_and_says_what_to_install(shell: Shell, command: str) -> None:
    script = (
        "import sys; sys.modules['psycopg'] = sys.modules['psycopg2'] = None;"
        f"from reversi_site.cli import main; sys.exit(main({command.split()!r}))"
    )
    env = shell.env(DATABASE_URL="postgres://nobody@127.0.0.1:1/none")

    done = subprocess.run(
        [sys.executable, "-c", script], cwd=shell.folder, env=env, capture_output=True, text=True, check=False
    )

    assert "install reversi[postgres]" in done.stdout + done.stderr
    assert done.returncode == (1 if command == "doctor" else 69), done
