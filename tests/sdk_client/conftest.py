"""A real server on loopback, people with keys, and a downstream in the test's process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from reversi_sdk import Client, Patience
from tests.databases import Database
from tests.sdk_client.downstream import MANIFESTS, Shop
from tests.sdk_client.servers import Server, running_server

PEOPLE = {"agent": ("agent",), "stranger": ("agent",), "operator": ("operator",), "cfo": ("finance",)}
Connect = Callable[..., Client]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a deployment that enforces the shop's manifests."""
    (tmp_path / "manifests.yaml").write_text(MANIFESTS)
    (tmp_path / "reversi.config.yaml").write_text("manifests: manifests.yaml\n")
    return tmp_path


def make_keys() -> dict[str, str]:
    from approvals.operations.keys import create_key
    from approvals.operations.people import ensure_user, setup_roles

    now = datetime.now(UTC)
    setup_roles(actor="local:tester", now=now)
    for name, roles in PEOPLE.items():
        ensure_user(username=name, roles=roles, actor="local:tester", now=now)
    return {name: create_key(owner=name, actor="local:tester", now=now)[1] for name in PEOPLE}


@pytest.fixture
def keys(request: pytest.FixtureRequest) -> dict[str, str]:
    """A key for each of the people, in the test's database."""
    return make_keys()


@pytest.fixture
def server(sqlite_db: Database, folder: Path) -> Iterator[Server]:
    """A server on SQLite."""
    with running_server(folder, sqlite_db.url) as server:
        yield server


@pytest.fixture
def any_server(db: Database, folder: Path) -> Iterator[Server]:
    """A server on each engine in turn."""
    with running_server(folder, db.url) as server:
        yield server


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Make clients that are closed when the test ends."""
    clients: list[Client] = []

    def make(url: str, key: str, **options: Any) -> Client:
        options.setdefault("patience", Patience(ordinary_ms=20_000, important_ms=20_000))
        clients.append(Client(url, api_key=key, **options))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def shop() -> Shop:
    """An empty shop."""
    return Shop()
