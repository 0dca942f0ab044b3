"""Which processes a test's server had, one number a line: nobody else knows them all after a restart."""

import os
import signal
import time
from pathlib import Path


def note_pid(file: str | None) -> None:
    if file:
        with Path(file).open("a", encoding="utf-8") as pids:
            pids.write(f"{os.getpid()}\n")


def noted_pids(file: Path) -> list[int]:
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def kill(pid: int) -> None:
    """Kill a process, and see it dead: until then it may still read what is sent to it."""
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.001)


def is_running(pid: int) -> bool:
    """Tell whether a process runs; a zombie, which only its parent can take away, does not."""
    try:
        os.kill(pid, 0)
        status = Path(f"/proc/{pid}/stat")
        return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
