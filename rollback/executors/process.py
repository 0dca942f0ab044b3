"""Run a configured command: no shell, none of our secrets in its environment, a bounded time and output (D27)."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from threading import Thread
from typing import IO

from rollback.core.errors import OptionsInvalid

MOST_OUTPUT = 8 * 1024 * 1024
MOST_ERROR = 64 * 1024
CHUNK = 64 * 1024
STREAMS_CLOSE_S = 2.0
_OURS = frozenset({"DATABASE_URL", "DJANGO_SETTINGS_MODULE", "PGPASSWORD", "PGPASSFILE"})


class How(StrEnum):
    """How a command ended."""

    EXITED = "exited"
    KILLED = "killed"
    TIMED_OUT = "timed_out"
    NOT_STARTED = "not_started"


@dataclass(frozen=True, slots=True)
class Ended:
    """What a command left behind; `last_line` is the last one it wrote to its standard error."""

    how: How
    code: int = 0
    output: bytes = b""
    last_line: str = ""


def split_command(text: str) -> tuple[str, ...]:
    """Cut a configured command into its words, as a shell would, without one; raises OptionsInvalid."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise OptionsInvalid(f"the command {text!r} cannot be read: {error}") from error
    if not words:
        raise OptionsInvalid("a command is empty")
    return words


def scrubbed(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without what is ours: a command needs its own credentials, never those of Reversi."""
    return {name: value for name, value in environment.items() if not _is_ours(name)}


def _is_ours(name: str) -> bool:
    return name in _OURS or name.startswith("REVERSI_")


def run_command(argv: Sequence[str], *, stdin: bytes, timeout_ms: int, cwd: str | None = None) -> Ended:
    """Run a command to its end or until its time is up, when its whole process group is killed."""
    try:
        process = _start(argv, cwd)
    except (OSError, ValueError) as error:
        return Ended(How.NOT_STARTED, last_line=f"{argv[0]} cannot be started: {error}")
    output, complaint = Collected(MOST_OUTPUT), Collected(MOST_ERROR, keeps_end=True)
    threads = [
        _in_background(_feed, process.stdin, stdin),
        _in_background(output.collect, process.stdout),
        _in_background(complaint.collect, process.stderr),
    ]
    how = _wait(process, timeout_ms)
    # A grandchild may hold the streams open for ever; what the command itself wrote is here by then.
    closed_by = time.monotonic() + STREAMS_CLOSE_S
    for thread in threads:
        thread.join(max(0.0, closed_by - time.monotonic()))
    code = process.returncode
    return Ended(How.KILLED if how is How.EXITED and code < 0 else how, code, output.data, complaint.last_line)


def _start(argv: Sequence[str], cwd: str | None) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        list(argv),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=scrubbed(os.environ),
        cwd=cwd,
        start_new_session=True,
    )


def _wait(process: subprocess.Popen[bytes], timeout_ms: int) -> How:
    try:
        process.wait(timeout_ms / 1000)
    except subprocess.TimeoutExpired:
        _kill_group(process)
        return How.TIMED_OUT
    except BaseException:
        # The one who waits is going away: nothing may go on working in its name.
        _kill_group(process)
        raise
    return How.EXITED


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _in_background(target: Callable[..., None], *arguments: object) -> Thread:
    thread = Thread(target=target, args=arguments, daemon=True)
    thread.start()
    return thread


def _feed(stream: IO[bytes], data: bytes) -> None:
    # A command that does not read its input closes it early; that is no failure.
    with contextlib.suppress(BrokenPipeError):
        stream.write(data)
    with contextlib.suppress(BrokenPipeError):
        stream.close()


class Collected:
    """What was read of a stream, up to a limit: its beginning, or its end."""

    def __init__(self, most: int, *, keeps_end: bool = False) -> None:
        self._most = most
        self._keeps_end = keeps_end
        self._held = bytearray()

    def collect(self, stream: IO[bytes]) -> None:
        """Read the stream to its end, keeping no more than the limit."""
        with stream:
            while chunk := os.read(stream.fileno(), CHUNK):
                self._hold(chunk)

    def _hold(self, chunk: bytes) -> None:
        self._held += chunk
        if self._keeps_end:
            del self._held[: -self._most]
        else:
            # One byte more tells that there was more.
            del self._held[self._most + 1 :]

    @property
    def data(self) -> bytes:
        """What is held."""
        return bytes(self._held)

    @property
    def last_line(self) -> str:
        """The last line that is not empty, as text."""
        lines = [line.strip() for line in self.data.decode("utf-8", "replace").splitlines() if line.strip()]
        return lines[-1] if lines else ""
