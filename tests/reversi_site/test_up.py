"""`reversi up` and `reversi-server` as processes: what they say, what they serve, and how they end."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.databases import Database
from tests.reversi_site.conftest import Shell
from tests.reversi_site.test_worker import eventually, members

READY = "press Ctrl-C to stop"
WAIT_SECONDS = 60


class Running:
    """A `reversi up` whose output is read along."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if line.startswith(READY):
                self._ready.set()

    def wait_until_ready(self) -> None:
        assert self._ready.wait(WAIT_SECONDS), self.lines

    @property
    def url(self) -> str:
        return next(line for line in self.lines if line.startswith("console: ")).removeprefix("console: ")

    def end(self) -> tuple[int, str]:
        assert self.process.stderr is not None
        said = self.process.stderr.read()
        self.process.wait(WAIT_SECONDS)
        self._reader.join(WAIT_SECONDS)
        return self.process.returncode, said


@contextmanager
def up(shell: Shell, *args: str, **env: str) -> Iterator[Running]:
    process = shell.start("up", *(args or ("--port", "0")), **env)
    running = Running(process)
    try:
        yield running
    finally:
        for pid in members(process.pid):
            os.kill(pid, signal.SIGKILL)
        process.kill()
        process.communicate()


def get(url: str, **headers: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_up_makes_everything_serves_everything_and_ends_clean(shell: Shell) -> None:
    with up(shell) as first:
        first.wait_until_ready()
        assert re.fullmatch(r"first sign-in: user admin, password \S{12,} \(shown only now\)", first.lines[0])
        assert json.loads(get(f"{first.url}readyz")[1])["checks"] == {"store": "ok", "keys": "ok"}
        assert eventually(lambda: json.loads(get(f"{first.url}healthz")[1])["worker"] == "ok")
        status, page = get(f"{first.url}console/login/")
        assert (status, "password" in page) == (200, True)
        style = re.search(r'href="(/static/[^"]+\.css)"', page)
        assert style is not None
        assert get(f"{first.url}{style[1][1:]}")[0] == 200
        assert get(f"{first.url}v1/runs")[0] == 401
        first.process.send_signal(signal.SIGTERM)
        code, said = first.end()

    assert (code, said.splitlines()[-1]) == (0, "stopped")
    assert "Traceback" not in said
    with up(shell) as second:
        second.wait_until_ready()
        assert second.lines[0].startswith("console: http://127.0.0.1:")
        assert get(f"{second.url}readyz", Host="elsewhere.example")[0] == 400


ENDS: dict[str, Callable[[subprocess.Popen[str]], object]] = {
    "SIGINT to the group, as Ctrl-C": lambda process: os.killpg(process.pid, signal.SIGINT),
    "SIGTERM to the main process": lambda process: process.terminate(),
    "SIGTERM to the group": lambda process: os.killpg(process.pid, signal.SIGTERM),
}


@pytest.mark.parametrize("end", ENDS)
def test_up_stops_whole_however_it_is_told(shell: Shell, end: str) -> None:
    with up(shell) as running:
        running.wait_until_ready()
        ENDS[end](running.process)
        code, _ = running.end()

        assert code == 0
        assert members(running.process.pid) == []


def test_nothing_outlives_a_killed_up(shell: Shell) -> None:
    with up(shell) as running:
        running.wait_until_ready()
        assert len(members(running.process.pid)) > 4

        running.process.kill()
        running.process.wait()

        assert eventually(lambda: members(running.process.pid) == [])


@pytest.mark.parametrize(("module", "name"), [("reversi_site.server", "web server"), ("reversi_site.cli", "worker")])
def test_up_ends_when_a_part_of_it_ends(shell: Shell, module: str, name: str) -> None:
    with up(shell) as running:
        running.wait_until_ready()
        os.kill(child_of(running.process.pid, module), signal.SIGKILL)
        code, said = running.end()

        assert code == 69
        assert said.splitlines()[-1].startswith(f"reversi: the {name} ended by itself (exit -9)")
        assert eventually(lambda: members(running.process.pid) == [])


def child_of(pid: int, module: str) -> int:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return next(int(child) for child in children if module in Path(f"/proc/{child}/cmdline").read_text().split("\0"))


def test_up_works_on_postgres(postgres_db: Database, shell: Shell) -> None:
    with up(shell, DATABASE_URL=postgres_db.url) as running:
        running.wait_until_ready()

        assert json.loads(get(f"{running.url}readyz")[1])["checks"] == {"store": "ok", "keys": "ok"}


@pytest.mark.parametrize("module", ["reversi_site.cli", "reversi_site.server"])
def test_a_port_that_is_taken_is_a_message(shell: Shell, module: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        args = ["up", "--port", port] if module == "reversi_site.cli" else ["--port", port]
        done = subprocess.run(
            [sys.executable, "-m", module, *args],
            cwd=shell.folder,
            env=shell.env(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    assert done.returncode == 69
    assert f"port {port} of 127.0.0.1 is in use" in done.stderr
    assert shell.names() == []


def test_an_address_that_is_none_is_a_message(shell: Shell) -> None:
    done = shell.run("up", "--host", "256.1.1.1", "--port", "0")

    assert done.returncode == 69
    assert "cannot listen on 256.1.1.1" in done.stderr


def test_the_server_wants_a_migrated_database(postgres_db: Database, shell: Shell) -> None:
    postgres_db.raw().execute("DELETE FROM django_migrations WHERE app = 'approvals'")
    done = subprocess.run(
        [sys.executable, "-m", "reversi_site.server", "--port", "0"],
        cwd=shell.folder,
        env=shell.env(DATABASE_URL=postgres_db.url),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 69
    assert "run `reversi migrate` once" in done.stderr
