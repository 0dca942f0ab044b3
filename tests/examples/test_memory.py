"""What the official memory server did is undone, but for the residue that is told, or named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from manifests_registry.core.snapshot import Snapshot
from tests.databases import Database
from tests.examples.graphs import graph_of, write_graph
from tests.examples.runs import manifests_of, play, undo
from tests.examples.servers import Memory, memory_world
from tests.examples.sessions import FIRST_ENTITIES, FIRST_RELATIONS, LOST_RELATIONS, memory_session


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Memory]:
    with memory_world(tmp_path) as world:
        write_graph(world.path, FIRST_ENTITIES, FIRST_RELATIONS)
        yield world


@pytest.fixture
def snapshot() -> Snapshot:
    return manifests_of("memory")


def test_a_whole_session_is_undone_but_for_the_residue(db: Database, world: Memory, snapshot: Snapshot) -> None:
    before = graph_of(world.path)

    errors = play(world=world, snapshot=snapshot, calls=memory_session())
    after = graph_of(world.path)
    undone = undo(world=world)

    assert [number for number, error in enumerate(errors) if error is not None] == [6], errors
    assert after != before
    assert undone.reasons == {}
    assert undone.report.is_complete
    assert graph_of(world.path).entities == before.entities
    assert graph_of(world.path).relations == before.relations - Counter(LOST_RELATIONS)
