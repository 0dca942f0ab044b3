from __future__ import annotations

from pathlib import Path

import pytest

from connectors.catalog import fs
from connectors.core.connector import Connector


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The directory that the tools may touch; beside it lies one that they may not."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("outside")
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture
def outside(root: Path) -> Path:
    return root.parent / "outside"


@pytest.fixture
def connector(root: Path) -> Connector:
    return fs.build(root)
