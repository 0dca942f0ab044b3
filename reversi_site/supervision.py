"""Everything on one machine under one supervisor: web server and worker as children, watched until it is time to stop.

A signal is passed on to the main process of each part, never to a group: the queue hangs when all of its processes
are hit at once. Parts that do not end in time are killed, and on Linux the kernel kills them when this process dies.
A part that ends by itself ends the others: half a deployment looks like a whole one.
"""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from reversi_sdk.errors import Unavailable
from reversi_site.process_group import dying_with_parent

POLL_SECONDS = 0.2
# Jobs under way are finished first; a rollback that takes longer is taken over by the next worker.
STOP_SECONDS = 30.0
LATE_SECONDS = 30.0
READY = 200


class PartEnded(Unavailable):
    """A part ended without being told to."""

    code = "part_ended"

    def __init__(self, name: str, code: int) -> None:
        super().__init__(f"the {name} ended by itself (exit {code}); what it said stands above")
        self.name, self.exit_code = name, code


@dataclass(frozen=True, slots=True)
class Part:
    """A process to run; it gets the descriptors and the variables besides what it inherits."""

    name: str
    module: str
    args: Sequence[str]
    descriptors: Sequence[int] = ()
    environ: Mapping[str, str] = field(default_factory=dict)


def web_part(listening: socket.socket, *, workers: int) -> Part:
    """The web server on a socket that already listens."""
    args = ["--listening", str(listening.fileno()), "--workers", str(workers)]
    return Part("web server", "reversi_site.server", args, (listening.fileno(),))


def worker_part() -> Part:
    """The worker with its ticker."""
    return Part("worker", "reversi_site.cli", ["worker"])


def supervise(
    parts: Sequence[Part], *, port: int, on_ready: Callable[[], object], wait: Callable[[float], bool], note: Any
) -> None:
    """Run the parts until `wait`, which sleeps for the given seconds, says that it is time to stop.

    `on_ready` is called once, when the web server on `port` says that it is ready. Raises PartEnded.
    """
    running: list[tuple[Part, subprocess.Popen[bytes]]] = []
    try:
        for part in parts:
            running.append((part, _start(part)))
        _watch(running, _Readiness(port, on_ready, note), wait)
    finally:
        _stop([process for _, process in running])


def stopping_on_signals() -> threading.Event:
    """Return what SIGTERM and SIGINT set from now on; handlers do nothing else."""
    stop = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, handle)
    signal.signal(signal.SIGINT, handle)
    return stop


def _start(part: Part) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", part.module, *part.args],
        env={**os.environ, **part.environ},
        stdin=subprocess.DEVNULL,
        pass_fds=tuple(part.descriptors),
        # A group of its own: Ctrl-C at the terminal reaches this process alone.
        process_group=0,
        preexec_fn=dying_with_parent(),  # noqa: PLW1509  # this process has one thread when it starts its parts
    )


def _watch(
    running: Sequence[tuple[Part, subprocess.Popen[bytes]]], readiness: _Readiness, wait: Callable[[float], bool]
) -> None:
    while not wait(POLL_SECONDS):
        for part, process in running:
            code = process.poll()
            if code is not None:
                raise PartEnded(part.name, code)
        readiness.look()


class _Readiness:
    """Asks the web server until it is ready, and says so once; says once as well when that takes long."""

    def __init__(self, port: int, on_ready: Callable[[], object], note: Callable[[str], object]) -> None:
        self._port, self._on_ready, self._note = port, on_ready, note
        self._late_at = time.monotonic() + LATE_SECONDS
        self._is_ready = self._is_late = False

    def look(self) -> None:
        """Ask if it is not known yet."""
        if self._is_ready:
            return
        said = _ask(self._port)
        if said == str(READY):
            self._is_ready = True
            self._on_ready()
        elif time.monotonic() > self._late_at and not self._is_late:
            self._is_late = True
            self._note(f"not ready yet, still trying; the web server says: {said}")


def _ask(port: int) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/readyz", headers={"Host": "localhost"})
        answer = connection.getresponse()
        body = answer.read(500).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        return type(error).__name__
    finally:
        connection.close()
    return str(READY) if answer.status == READY else f"{answer.status} {body}"


def _stop(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        # Reaped ones are left alone by the method itself.
        process.send_signal(signal.SIGTERM)
    ends_at = time.monotonic() + STOP_SECONDS
    for process in processes:
        try:
            process.wait(timeout=max(0.1, ends_at - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
