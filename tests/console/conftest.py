"""A console on a database of its own, a world that its tools reach, and somebody of every kind who may ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.conf import settings

from tests.databases import Database

if TYPE_CHECKING:
    from django.test import Client

    from tests.console.world import World

# What needs the models is imported where it is used: this file is read before Django is set up.
PASSWORD = "correct horse battery"
# What each belongs to; `nobody` has an account and no role.
PEOPLE: Mapping[str, tuple[str, ...]] = {
    "agent": ("agent",),
    "other_agent": ("agent",),
    "operator": ("operator",),
    "reviewer": ("reviewer",),
    "approver": ("finance",),
    "admin": ("admin",),
    "auditor": ("auditor",),
    "nobody": (),
}


@dataclass(frozen=True, slots=True)
class Console:
    """The console and the world; `client` is a browser without scripts."""

    world: World

    def client(self, who: str | None, *, checks_csrf: bool = False) -> Client:
        """Return a browser in which somebody is signed in."""
        from django.contrib.auth.models import User
        from django.test import Client

        client = Client(enforce_csrf_checks=checks_csrf)
        if who is not None:
            client.force_login(User.objects.get(username=who))
        return client


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    from tests.console.world import FOLDER, TOOLS, World

    folder = tmp_path / "world"
    folder.mkdir()
    monkeypatch.setenv(FOLDER, str(folder))
    monkeypatch.setattr(settings, "REVERSI_TOOLS", TOOLS)
    return World(folder)


def add_people() -> None:
    from approvals.operations.people import ensure_user, setup_roles

    now = datetime.now(UTC)
    setup_roles(actor="test", now=now)
    for name, roles in PEOPLE.items():
        ensure_user(username=name, roles=roles, actor="test", now=now)


@pytest.fixture
def console(db: Database, world: World) -> Console:
    add_people()
    return Console(world)


def give_passwords(*names: str) -> None:
    """Let people sign in by hand: only who does needs a password, and making one takes its time."""
    from approvals.operations.people import set_password

    for name in names:
        set_password(username=name, password=PASSWORD, actor="test", now=datetime.now(UTC))


@pytest.fixture
def passwords(console: Console) -> None:
    give_passwords(*PEOPLE)
