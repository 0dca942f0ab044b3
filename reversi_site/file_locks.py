"""Let one process of several do something to a file in the data folder."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reversi_site.secret_files import DataFolderUnusable


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock that stands beside the file, waiting for whoever has it; raises DataFolderUnusable."""
    try:
        handle = path.with_name(f"{path.name}.lock").open("a")
    except OSError as error:
        raise DataFolderUnusable(path.parent, error.strerror or str(error)) from error
    with handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
