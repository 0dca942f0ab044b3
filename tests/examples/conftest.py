"""One server for the tests of a module; each test gets its world laid out anew."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.examples.servers import Files, Memory


@pytest.fixture(scope="module")
def served_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Files]:
    # Not at the top: this file is read before Django is set up.
    from tests.examples.servers import files_world

    with files_world(tmp_path_factory.mktemp("files")) as world:
        yield world


@pytest.fixture
def files(served_files: Files) -> Files:
    """The file server, its folder laid out."""
    served_files.start_anew()
    return served_files


@pytest.fixture(scope="module")
def served_memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    from tests.examples.servers import memory_world

    with memory_world(tmp_path_factory.mktemp("memory")) as world:
        yield world


@pytest.fixture
def memory(served_memory: Memory) -> Memory:
    """The memory server, its graph laid out."""
    served_memory.start_anew()
    return served_memory
