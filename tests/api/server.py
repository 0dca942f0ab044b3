"""A web server of its own process on the test's database, as an operator would start it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from tests.databases import Database
from tests.postgres import REPOSITORY
from tests.system.waiting import wait_until

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Server:
    """Where it listens, and what it said so far."""

    port: int
    log: Path

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def connect(self) -> socket.socket:
        return socket.create_connection((HOST, self.port), timeout=60)

    def is_answering(self) -> bool:
        try:
            return requests.get(f"{self.url}/healthz", timeout=5).status_code == 200
        except requests.RequestException:
            return False

    def post(self, path: str, body: Any, *, token: str, **fields: Any) -> requests.Response:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        data = body if hasattr(body, "__next__") or isinstance(body, bytes) else json.dumps(body)
        return requests.post(f"{self.url}/v1/{path}", data=data, headers=headers, timeout=60, **fields)


@contextmanager
def live_server(database: Database, *, manifests: Path, workers: int = 1) -> Iterator[Server]:
    """Run a server for the block."""
    folder = manifests.parent
    (folder / "reversi.config.yaml").write_text(f"manifests: [{manifests}]\n")
    environment = {**database.env(), "REVERSI_CONFIG": str(folder / "reversi.config.yaml")}
    with socket.create_server((HOST, 0), backlog=512) as listening, (folder / "server.log").open("wb") as log:
        server = Server(listening.getsockname()[1], folder / "server.log")
        process = start(listening, environment, workers=workers, log=log)
    try:
        wait_until(server.is_answering, what="the server answers")
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)


def start(
    listening: socket.socket, environment: Mapping[str, str], *, workers: int, log: Any
) -> subprocess.Popen[bytes]:
    descriptor = str(listening.fileno())
    return subprocess.Popen(
        [sys.executable, "-m", "reversi_site.server", "--listening", descriptor, "--workers", str(workers)],
        cwd=REPOSITORY,
        env=environment,
        pass_fds=[listening.fileno()],
        stdout=log,
        stderr=log,
    )
