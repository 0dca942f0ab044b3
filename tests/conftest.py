"""What every test stands on: an environment of its own, Django set up on it, and databases on request.

A test that asks for `db` runs once on SQLite and once on PostgreSQL, each time on a fresh, migrated database with
real commits; `sqlite_db` and `postgres_db` are for what only one engine has. A test without one of them that touches
the database fails and says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import django
import pytest

from tests.databases import (
    NO_DATABASE,
    Database,
    PostgresDatabases,
    make_sqlite_template,
    point_default_at,
    sqlite_database,
)
from tests.postgres import PostgresUnavailable, find_binaries, session_server
from tests.session import SessionFolder

SETTINGS = "reversi_site.settings"
REQUIRE_POSTGRES = "REVERSI_REQUIRE_POSTGRES"

_folder = pytest.StashKey[Path]()
_owned_folder = pytest.StashKey[SessionFolder]()
_process = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """Give this process its environment, and the whole run its folder when this process controls it."""
    workerinput: dict[str, Any] | None = getattr(config, "workerinput", None)
    if workerinput is None:
        _require_postgres()
        config.stash[_owned_folder] = SessionFolder()
        config.stash[_folder] = config.stash[_owned_folder].path
        config.stash[_process] = "main"
    else:
        config.stash[_folder] = Path(workerinput["reversi_folder"])
        config.stash[_process] = workerinput["workerid"]
    _isolate(config.stash[_folder] / f"data-{config.stash[_process]}")
    django.setup()
    point_default_at(NO_DATABASE)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of xdist where the run's folder is."""
    node.workerinput["reversi_folder"] = str(node.config.stash[_folder])


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the run's server and remove its folder."""
    folder = config.stash.get(_owned_folder, None)
    if folder is not None:
        folder.close()


def _require_postgres() -> None:
    if os.environ.get(REQUIRE_POSTGRES) and find_binaries() is None:
        raise pytest.UsageError(f"{REQUIRE_POSTGRES} is set and no PostgreSQL server programs were found")


def _isolate(data: Path) -> None:
    """Keep the settings of whoever runs the tests out of them."""
    for name in list(os.environ):
        if name.startswith(("REVERSI_", "PG", "DATABASE_URL")) and name != REQUIRE_POSTGRES:
            del os.environ[name]
    os.environ["REVERSI_DATA"] = str(data)
    os.environ["DJANGO_SETTINGS_MODULE"] = SETTINGS
    # The name by which Django's own test client calls.
    os.environ["REVERSI_ALLOWED_HOSTS"] = "testserver"


@pytest.fixture(scope="session")
def session_folder(request: pytest.FixtureRequest) -> Path:
    """The folder that all processes of this run share."""
    return request.config.stash[_folder]


@pytest.fixture(scope="session")
def sqlite_template(session_folder: Path) -> Path:
    """The migrated SQLite file that tests get copies of."""
    return make_sqlite_template(session_folder)


@pytest.fixture(scope="session")
def postgres_databases(request: pytest.FixtureRequest, session_folder: Path) -> Iterator[PostgresDatabases]:
    """The session's server with its template; skips, visibly, where no server can be had."""
    try:
        server = session_server(session_folder)
    except PostgresUnavailable as reason:
        if os.environ.get(REQUIRE_POSTGRES):
            pytest.fail(f"PostgreSQL is required: {reason}")
        pytest.skip(f"PostgreSQL: {reason}")
    databases = PostgresDatabases(server=server, session=session_folder, process=request.config.stash[_process])
    yield databases
    databases.close()


@pytest.fixture
def sqlite_db(sqlite_template: Path) -> Iterator[Database]:
    """A fresh, migrated SQLite database as the default one."""
    with sqlite_database(sqlite_template) as database:
        yield database


@pytest.fixture
def postgres_db(postgres_databases: PostgresDatabases) -> Iterator[Database]:
    """A fresh, migrated PostgreSQL database as the default one."""
    with postgres_databases.database() as database:
        yield database


@pytest.fixture(params=["sqlite", "postgres"])
def db(request: pytest.FixtureRequest) -> Database:
    """A fresh, migrated database as the default one, on each engine in turn."""
    database: Database = request.getfixturevalue(f"{request.param}_db")
    return database


COUNTED = "counted: "


@pytest.fixture
def record_count(record_property: Callable[[str, object], None]) -> Callable[[str, object], None]:
    """Have the end of the run say how often something was really done, such as a kill at a boundary."""
    return lambda what, count: record_property(COUNTED + what, count)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print what tests counted, from whichever process they ran in."""
    reports = terminalreporter.stats.get("passed", [])
    counts = [(name, count) for report in reports for name, count in report.user_properties if report.when == "call"]
    for name, count in sorted((name, count) for name, count in counts if name.startswith(COUNTED)):
        terminalreporter.write_line(f"{name}: {count}")
