"""What tests of the API share.

Models are imported by the fixtures: a conftest may be loaded before Django is set up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.conf import settings
from django.test import override_settings

from tests.databases import Database

if TYPE_CHECKING:
    from tests.api.world import World


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Path]:
    """Have the deployment enforce the shop's manifests."""
    from tests.api.world import write_manifests

    path = write_manifests(tmp_path)
    with override_settings(CONFIGURATION=replace(settings.CONFIGURATION, manifests=(path,))):
        yield path


@pytest.fixture
def world(sqlite_db: Database, shop: Path) -> World:
    """People with keys around the shop, on SQLite."""
    from tests.api.world import World, make_people

    return World(make_people())


@pytest.fixture
def any_world(db: Database, shop: Path) -> World:
    """People with keys around the shop, on each engine in turn."""
    from tests.api.world import World, make_people

    return World(make_people())
