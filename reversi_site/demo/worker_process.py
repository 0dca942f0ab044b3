"""A real worker as a child process, stopped whatever happens."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STOP_SECONDS = 20


@contextmanager
def running_worker(log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run `reversi worker` for the block; only its main process is signalled, which stops the others."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "reversi_site.cli", "worker"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        # Its own children are tied to it and end with it.
        process.kill()
        process.wait()
