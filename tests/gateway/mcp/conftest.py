"""Asynchronous tests here are plain functions that hand a coroutine function to `anyio.run`: one loop for each test,
closed at its end, so that whatever is left open shows as a warning, and so as an error.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateway.mcp.servers.pids import is_running, noted_pids


@pytest.fixture
def pids(tmp_path: Path) -> Iterator[Path]:
    """The file that a server notes its process in; when the test is over none of these may run."""
    file = tmp_path / "pids"
    yield file
    assert [pid for pid in noted_pids(file) if is_running(pid)] == []
