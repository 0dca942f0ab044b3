"""A real web server as a child process, on a socket that the test keeps: it can be killed and started again there."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.postgres import REPOSITORY


@dataclass(slots=True)
class Server:
    """The web server, and the worker when one was asked for."""

    folder: Path
    database: str
    listening: socket.socket
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _port: int = 0

    @property
    def port(self) -> int:
        port: int = self.listening.getsockname()[1]
        return port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        number = str(self.listening.fileno())
        self._run("reversi_site.server", ["--listening", number, "--workers", "1"])

    def start_worker(self) -> None:
        self._run("reversi_site.cli", ["worker"])

    def kill(self) -> None:
        """End everything at once, as a power cut would, and see that the web server's processes are gone too."""
        for process in self._processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._processes.clear()

    def leave(self) -> None:
        """Die and take the socket along: connections are refused, and none that waits is served later."""
        port = self.port
        self.kill()
        self.listening.close()
        self._port = port

    def come_back(self) -> None:
        """Listen on the same port again."""
        self.listening = socket.create_server(("127.0.0.1", self._port))
        self.start()

    def _run(self, module: str, args: Sequence[str]) -> None:
        env = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        own = {"PYTHONPATH": str(REPOSITORY), "DATABASE_URL": self.database, "REVERSI_DATA": os.environ["REVERSI_DATA"]}
        process = subprocess.Popen(
            [sys.executable, "-m", module, *args],
            cwd=self.folder,
            env=env | own,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[self.listening.fileno()],
            start_new_session=True,
        )
        self._processes.append(process)


@contextmanager
def running_server(folder: Path, database: str) -> Iterator[Server]:
    """Give a started server; connections that come before it is up wait in the socket's queue."""
    server = Server(folder, database, socket.create_server(("127.0.0.1", 0)))
    server.start()
    try:
        yield server
    finally:
        server.kill()
        server.listening.close()
