"""The folder of one test session, shared by its processes, and the lock that says the session still lives.

The locks are POSIX record locks: the kernel frees them when their process ends, however it ends, and a forked child
does not hold them. They are lost when their process closes any handle on the file, so each is opened in one place.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SESSION_LOCK = "session.lock"
SERVER_LOCK = "server.lock"

# Making the files of a database took ten times longer on a disk than in memory, a durable commit forty times.
MEMORY = Path("/dev/shm")
NEEDED_MEMORY = 1 << 30


@contextmanager
def only_one(path: Path) -> Iterator[None]:
    """Hold the lock file for the block; waits while another process holds it."""
    with path.open("a") as handle:
        fcntl.lockf(handle, fcntl.LOCK_EX)
        yield


def wait_until_free(path: Path) -> None:
    """Return when no other process holds the lock file."""
    with path.open("a") as handle:
        fcntl.lockf(handle, fcntl.LOCK_EX)


def _parent() -> Path | None:
    """Return where the folder shall stand: in memory where there is enough of it, else the usual place."""
    is_usable = MEMORY.is_dir() and os.access(MEMORY, os.W_OK | os.X_OK)
    return MEMORY if is_usable and shutil.disk_usage(MEMORY).free >= NEEDED_MEMORY else None


class SessionFolder:
    """Made by the process that controls the run; the workers only learn its path."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="reversi-tests-", dir=_parent()))
        # The PostgreSQL account must be able to walk through, not to read.
        self.path.chmod(0o711)
        self._life = (self.path / SESSION_LOCK).open("w")
        fcntl.lockf(self._life, fcntl.LOCK_EX)

    def close(self) -> None:
        """End the session: wait until its server has stopped, if it has one, and remove the folder."""
        with (self.path / SERVER_LOCK).open("a") as server:
            self._life.close()
            fcntl.lockf(server, fcntl.LOCK_EX)
        shutil.rmtree(self.path, ignore_errors=True)
