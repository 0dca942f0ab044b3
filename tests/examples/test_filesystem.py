"""What the official file server did is undone, byte by byte, or named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from manifests_registry.core.snapshot import Snapshot
from tests.connectors.trees import tree_of
from tests.databases import Database
from tests.examples.runs import manifests_of, play, undo
from tests.examples.servers import Files, files_world
from tests.examples.sessions import file_session, furnish


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Files]:
    with files_world(tmp_path) as world:
        furnish(world.root)
        yield world


@pytest.fixture
def snapshot() -> Snapshot:
    return manifests_of("filesystem")


def test_a_whole_session_is_undone_exactly(db: Database, world: Files, snapshot: Snapshot) -> None:
    before = tree_of(world.root)
    session = file_session(world.root)

    errors = play(world=world, snapshot=snapshot, calls=session)
    after = tree_of(world.root)
    undone = undo(world=world)

    assert sum(error is not None for error in errors) == 5, errors
    assert after != before
    assert undone.reasons == {}
    assert undone.report.is_complete
    assert tree_of(world.root) == before
