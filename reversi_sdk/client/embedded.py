"""The private server of an embedded client: a child process that this process alone can reach, and never outlives.

It listens on a loopback socket that is made here, so its port cannot be taken in between. It says through a pipe when
it is ready, and with which key, generated for this once. It lives as long as the other end of its standard input stays
open: when this process dies, however it dies, the child sees the end of it and stops.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reversi_sdk.client.addresses import Address
from reversi_sdk.client.errors import EmbeddedServerFailed

MODULE = "reversi_site.private_server"
START_SECONDS = 90.0
STOP_SECONDS = 40.0


@dataclass(frozen=True, slots=True)
class EmbeddedServer:
    """A running private server."""

    address: Address
    _process: subprocess.Popen[bytes]

    def stop(self) -> None:
        """Let jobs under way finish, and end it; safe to repeat."""
        _stop(self._process)


def start_server(data: str | Path, *, environ: Mapping[str, str]) -> EmbeddedServer:
    """Start a private server on the data folder; raises EmbeddedServerFailed."""
    read_end, write_end = os.pipe()
    with socket.create_server(("127.0.0.1", 0)) as listening, os.fdopen(read_end, "rb") as report:
        port = listening.getsockname()[1]
        try:
            process = _start(Path(data), listening.fileno(), write_end, environ)
        finally:
            os.close(write_end)
        try:
            key = _key(report.fileno(), process)
        except BaseException:
            _stop(process)
            raise
    return EmbeddedServer(Address(f"http://127.0.0.1:{port}", key), process)


def _start(data: Path, listening: int, report: int, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", MODULE, "--listening", str(listening), "--report", str(report)]
    return subprocess.Popen(
        command,
        env={**os.environ, **environ, "REVERSI_DATA": str(data.absolute())},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        pass_fds=(listening, report),
        # Out of the terminal's reach: Ctrl-C is for this process, which then ends the child.
        start_new_session=True,
    )


def _key(report: int, process: subprocess.Popen[bytes]) -> str:
    ends_at, text = time.monotonic() + START_SECONDS, b""
    with selectors.DefaultSelector() as selector:
        selector.register(report, selectors.EVENT_READ)
        while not text.endswith(b"\n"):
            if not selector.select(max(0.0, ends_at - time.monotonic())):
                raise EmbeddedServerFailed(f"the private server was not ready in {START_SECONDS:.0f} seconds")
            part = os.read(report, 4096)
            if not part:
                raise EmbeddedServerFailed(f"the private server ended at its start (exit {_exit(process)})")
            text += part
    said = json.loads(text)
    if "error" in said:
        raise EmbeddedServerFailed(f"the private server did not start: {said['error']}")
    return str(said["api_key"])


def _exit(process: subprocess.Popen[bytes]) -> int | None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(timeout=5)
    return None


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(timeout=STOP_SECONDS)
    except subprocess.TimeoutExpired:
        # Its children are tied to it and die with it.
        process.kill()
        process.wait()
