"""A database of its own for each test, with real commits.

The schema is migrated once a session into a template; a test gets a copy (SQLite: of the file; PostgreSQL: of the
template database), the default connection is pointed at it, and afterwards at nothing. No transaction is wrapped
around a test and nothing is flushed: operations are durable, and the append-only triggers would refuse a flush.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
from django.apps import apps
from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, connections
from psycopg import sql

from reversi_site.database_url import database_settings
from tests.postgres import REPOSITORY
from tests.session import only_one

NO_DATABASE: Mapping[str, Any] = {"ENGINE": "tests.no_database"}
SQLITE_SCHEME = "sqlite:///"
TEMPLATE = "reversi_template"
HAS_COPY_STRATEGIES = 150000


@dataclass(frozen=True, slots=True)
class Database:
    """What a test is given; `url` is the DATABASE_URL of its database, `engine` is `sqlite` or `postgres`."""

    engine: str
    url: str
    _opened: list[Any] = field(default_factory=list)

    def env(self) -> dict[str, str]:
        """Return the environment for a child process that shall work on this database."""
        return {**os.environ, "DATABASE_URL": self.url, "PYTHONPATH": str(REPOSITORY)}

    def raw(self) -> Any:
        """Return a connection of the driver itself, in autocommit; it is closed when the test ends."""
        connection = self._connect()
        self._opened.append(connection)
        return connection

    def _connect(self) -> Any:
        if self.engine == "sqlite":
            return sqlite3.connect(self.url.removeprefix(SQLITE_SCHEME), isolation_level=None, timeout=20)
        return psycopg.connect(self.url, autocommit=True)

    def close_raw(self) -> None:
        """Close what `raw` opened."""
        while self._opened:
            self._opened.pop().close()


def point_default_at(settings: Mapping[str, Any]) -> None:
    """Make the default alias mean another database, in this thread and in those that start later."""
    connections.close_all()
    # A new mapping in the old place: connections that other threads still hold keep the settings they were made with.
    connections.settings[DEFAULT_DB_ALIAS] = dict(settings)
    connections.configure_settings(connections.settings)
    if any(connection.alias == DEFAULT_DB_ALIAS for connection in connections.all(initialized_only=True)):
        del connections[DEFAULT_DB_ALIAS]
    # Its cache of primary keys is per alias, and the next database may have others.
    apps.get_model("contenttypes", "ContentType").objects.clear_cache()


@contextmanager
def in_use(database: Database) -> Iterator[Database]:
    """Make the database the default one for the block, and none afterwards."""
    point_default_at(database_settings(database.url, Path(os.environ["REVERSI_DATA"])))
    try:
        yield database
    finally:
        database.close_raw()
        point_default_at(NO_DATABASE)


def _migrate(database: Database) -> None:
    with in_use(database):
        call_command("migrate", verbosity=0, interactive=False)
        if database.engine == "sqlite":
            # What stays in the write-ahead log would be missing from a copy of the file.
            database.raw().execute("PRAGMA wal_checkpoint(TRUNCATE)")


def make_sqlite_template(session: Path) -> Path:
    """Return the session's migrated file, made by the first process that asks."""
    template = session / "template.sqlite3"
    with only_one(session / "template-sqlite.lock"):
        if not template.exists():
            draft = session / "draft.sqlite3"
            draft.unlink(missing_ok=True)
            _migrate(Database("sqlite", f"{SQLITE_SCHEME}{draft}"))
            draft.rename(template)
    return template


@contextmanager
def sqlite_database(template: Path) -> Iterator[Database]:
    """Give a copy of the template, removed after the block."""
    with tempfile.TemporaryDirectory(prefix="sqlite-", dir=template.parent, ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "reversi.sqlite3"
        shutil.copyfile(template, path)
        with in_use(Database("sqlite", f"{SQLITE_SCHEME}{path}")) as database:
            yield database


class PostgresDatabases:
    """Copies of the template on the session's server, for one test process."""

    def __init__(self, *, server: str, session: Path, process: str) -> None:
        self._server = server
        self._process = process
        self._numbers = count(1)
        self._spent: list[str] = []
        self._admin = psycopg.connect(f"{server}/postgres", autocommit=True)
        # Copying files beats copying through the log for a small template, and older servers know nothing else.
        is_chosen = self._admin.info.server_version >= HAS_COPY_STRATEGIES
        self._strategy = sql.SQL("STRATEGY FILE_COPY" if is_chosen else "")
        self._make_template(session)

    def _make_template(self, session: Path) -> None:
        done = session / "template-postgres.done"
        with only_one(session / "template-postgres.lock"):
            if done.exists():
                return
            self._drop(TEMPLATE)
            self._admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(TEMPLATE)))
            _migrate(self._named(TEMPLATE))
            done.touch()

    def _named(self, name: str) -> Database:
        return Database("postgres", f"{self._server}/{name}")

    def _drop(self, name: str) -> None:
        # Forced: a test may have left threads or child processes connected.
        self._admin.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    @contextmanager
    def database(self) -> Iterator[Database]:
        """Give a fresh copy."""
        name = f"test_{self._process}_{next(self._numbers)}"
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {} {}")
        names = (sql.Identifier(name), sql.Identifier(TEMPLATE))
        self._admin.execute(statement.format(*names, self._strategy))
        try:
            with in_use(self._named(name)) as database:
                yield database
        finally:
            self._put_away(name)

    def _put_away(self, name: str) -> None:
        # One test late: a drop waits a tenth of a second for connections that were closed only just now.
        self._spent.append(name)
        while len(self._spent) > 1:
            self._drop(self._spent.pop(0))

    def close(self) -> None:
        """Leave the server."""
        self._admin.close()
