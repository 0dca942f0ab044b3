"""A real worker as a child process, stopped whatever happens."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

STOP_SECONDS = 20
INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def running_worker(log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run `reversi worker` for the block; only its main process is signalled, which stops the others."""
    with log.open("wb") as output, ExitStack() as afterwards:
        with interruptions_held_back():
            process = subprocess.Popen(
                [sys.executable, "-m", "reversi_site.cli", "worker"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            afterwards.callback(_stop, process)
        yield process


@contextmanager
def interruptions_held_back() -> Iterator[None]:
    """Let an interruption wait for the end of the block; after the start and before it is known, it orphans a child."""
    held: list[int] = []
    handlers = {number: signal.signal(number, lambda number, _: held.append(number)) for number in INTERRUPTIONS}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if held:
        signal.raise_signal(held[0])


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        # Its own children are tied to it and end with it.
        process.kill()
        process.wait()
