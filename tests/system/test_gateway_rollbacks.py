"""What went through a gateway is undone by workers, by sessions of their own, or by the gateway that holds one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from django.db import connections

from ledger.core.statuses import StepState
from ledger.queries import list_steps
from reversi_site.kit.clock import SystemClock
from rollback.core.jobs import JobState
from rollback.operations.jobs import start_rollback
from rollback.queries import get_job
from tests.connectors.trees import tree_of
from tests.databases import Database
from tests.examples.runs import EXAMPLES
from tests.examples.sessions import file_session, furnish
from tests.npm_servers import filesystem_server
from tests.system.gateways import environment, through_gateway
from tests.system.waiting import wait_until

RUN = "run_worked"


@contextmanager
def worker(env: dict[str, str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a real worker of the deployment in the folder of its configuration."""
    with (folder / "worker.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "reversi_site.cli", "worker"],
            env={**os.environ, **env, "REVERSI_WORKERS": "1"},
            cwd=folder,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    furnish(folder)
    return folder


def processes_of(folder: Path) -> set[int]:
    """Return the file servers that serve the folder."""
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if str(folder).encode() in words and any(b"server-filesystem" in word for word in words):
            found.add(int(entry.name))
    return found


def play(env: dict[str, str], folder: Path, flags: list[str], root: Path) -> None:
    async def session() -> None:
        async with through_gateway(env=env, folder=folder, flags=flags) as client:
            for tool, arguments in file_session(root):
                await client.call_tool(tool, arguments)

    anyio.run(session)


@pytest.mark.timeout(180)
def test_a_worker_undoes_by_a_session_of_its_own_and_leaves_no_server_behind(
    db: Database, tmp_path: Path, root: Path
) -> None:
    before, env = tree_of(root), environment(db, tmp_path)
    command = filesystem_server(root)
    flags = ["--manifests", str(EXAMPLES / "filesystem/manifests.yaml"), "--run-id", RUN, "--upstream-cmd", command[0]]
    flags += [each for word in command[1:] for each in ("--upstream-arg", word)]
    flags += ["--connector", "fs", "--root", str(root), "--backup-dir", str(tmp_path / "backups")]
    play(env, tmp_path, flags, root)
    assert tree_of(root) != before
    assert processes_of(root) == set()

    with worker(env, tmp_path):
        job = start_rollback(run_id=RUN, actor="dana", now=SystemClock().now())
        wait_until(lambda: get_job(job.id).state in (JobState.DONE, JobState.FAILED), what="the rollback", limit_s=90)

    done = get_job(job.id)
    assert (done.state, done.error) == (JobState.DONE, None)
    assert done.report is not None
    assert done.report["complete"] is True
    assert tree_of(root) == before
    wait_until(lambda: processes_of(root) == set(), what="the worker's server ends", limit_s=15)


@pytest.mark.timeout(180)
def test_a_worker_that_is_killed_leaves_no_server_behind(sqlite_db: Database, tmp_path: Path, root: Path) -> None:
    env, command = environment(sqlite_db, tmp_path), filesystem_server(root)
    flags = ["--manifests", str(EXAMPLES / "filesystem/manifests.yaml"), "--run-id", RUN, "--upstream-cmd", command[0]]
    flags += [each for word in command[1:] for each in ("--upstream-arg", word)]
    flags += ["--connector", "fs", "--root", str(root), "--backup-dir", str(tmp_path / "backups")]
    play(env, tmp_path, flags, root)

    with worker(env, tmp_path) as process:
        job = start_rollback(run_id=RUN, actor="dana", now=SystemClock().now())
        wait_until(lambda: get_job(job.id).state is JobState.DONE, what="the rollback", limit_s=90)
        # The session outlives its job for a minute; nobody is left to end it but its own closed input.
        assert len(processes_of(root)) == 1
        process.kill()

        wait_until(lambda: processes_of(root) == set(), what="the server of a killed worker ends", limit_s=15)


@pytest.mark.timeout(180)
def test_a_live_session_is_undone_by_the_gateway_that_holds_it(db: Database, tmp_path: Path, root: Path) -> None:
    before, env = tree_of(root), environment(db, tmp_path)
    command = filesystem_server(root)
    configuration: dict[str, Any] = {
        "manifests": str(EXAMPLES / "filesystem/manifests.yaml"),
        "upstreams": [
            {"name": "files", "cmd": command[0], "args": command[1:], "session": "live"},
            {"connector": "fs", "root": str(root), "backup_dir": str(tmp_path / "backups")},
        ],
    }
    (tmp_path / "reversi.config.yaml").write_text(json.dumps(configuration))

    async def session() -> str:
        async with through_gateway(env=env, folder=tmp_path, flags=["--run-id", RUN]) as client:
            await client.call_tool("write_file", {"path": str(root / "new"), "content": "x"})
            await client.call_tool("write_file", {"path": str(root / "notes/today.md"), "content": "y"})
            return await anyio.to_thread.run_sync(rolled_back)

    def rolled_back() -> str:
        try:
            with worker(env, tmp_path):
                job = start_rollback(run_id=RUN, actor="dana", now=SystemClock().now())
                ended = (JobState.DONE, JobState.FAILED)
                wait_until(lambda: get_job(job.id).state in ended, what="the gateway takes the job", limit_s=90)
            return job.id
        finally:
            connections.close_all()

    job_id = anyio.run(session)

    done = get_job(job_id)
    assert (done.state, done.error) == (JobState.DONE, None)
    assert [step.state for step in list_steps(RUN)] == [StepState.COMPENSATED] * 2
    assert tree_of(root) == before
