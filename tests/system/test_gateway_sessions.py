"""Sixteen agents at once behind one gateway: nothing of one ends up with another, and each can be taken back alone."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation

from approvals.core.people import Role
from approvals.operations.keys import create_key
from approvals.operations.people import ensure_user
from ledger.core.statuses import StepState
from ledger.queries import list_steps
from reversi_site.kit.clock import SystemClock
from tests.connectors.trees import Tree, tree_of
from tests.databases import Database
from tests.examples.runs import EXAMPLES
from tests.npm_servers import filesystem_server
from tests.system.gateways import environment

AGENTS = 16
CALLS = 10
SEED = 20261201


@contextmanager
def gateway(env: dict[str, str], folder: Path, flags: list[str]) -> Iterator[str]:
    """Run a gateway that listens; gives its address."""
    command = [sys.executable, "-m", "reversi_site.gateway_cli", "--http", "127.0.0.1:0", *flags]
    with subprocess.Popen(command, env={**os.environ, **env}, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = ""
        while (found := re.search(r"listening on (\S+)", said)) is None:
            line = process.stderr.readline()
            assert line, said
            said += line
        try:
            yield found[1].rstrip("/")
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)


def key_of(name: str) -> str:
    now = SystemClock().now()
    ensure_user(username=name, roles=[Role.AGENT.value], actor="tests", now=now)
    return create_key(owner=name, actor="tests", now=now, scope=["files:*"])[1]


def session_of(number: int, folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """Make up what one agent does in its own folder."""
    chance = random.Random(SEED + number)
    calls: list[tuple[str, dict[str, Any]]] = [("create_directory", {"path": str(folder / f"made-{number}")})]
    for at in range(CALLS - 1):
        name = folder / chance.choice(["kept.txt", f"new-{at}.txt", f"made-{number}/deep-{at}.txt"])
        calls.append(("write_file", {"path": str(name), "content": f"agent {number}, call {at}\n"}))
    return calls


@pytest.mark.timeout(180)
def test_sixteen_interleaved_sessions_mix_nothing_up(db: Database, tmp_path: Path) -> None:
    root = tmp_path / "root"
    folders = [root / f"agent-{number}" for number in range(AGENTS)]
    for number, folder in enumerate(folders):
        folder.mkdir(parents=True)
        (folder / "kept.txt").write_text(f"of agent {number} from the beginning\n")
    before = [tree_of(folder) for folder in folders]
    sessions = [session_of(number, folder) for number, folder in enumerate(folders)]
    env, command = environment(db, tmp_path), filesystem_server(root)
    flags = ["--manifests", str(EXAMPLES / "filesystem/manifests.yaml"), "--upstream-cmd", command[0]]
    flags += [each for word in command[1:] for each in ("--upstream-arg", word)]
    flags += ["--connector", "fs", "--root", str(root), "--backup-dir", str(tmp_path / "backups")]
    # Pairs share a person and a client's name: only the name of the run keeps them apart.
    keys = [key_of(f"agent-{number // 2}") for number in range(AGENTS)]
    answers: list[list[Any]] = [[] for _ in range(AGENTS)]

    async def act(url: str, number: int) -> None:
        headers = {"authorization": f"Bearer {keys[number]}", "reversi-run-id": f"run_{number}"}
        mode = ("legacy", "2026-07-28")[number % 2]
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            wire = streamable_http_client(f"{url}/mcp", http_client=http)
            who = Implementation(name="agent", version="1")
            async with Client(wire, mode=mode, cache=None, client_info=who) as client:
                for tool, arguments in sessions[number]:
                    answers[number].append(await client.call_tool(tool, arguments))

    async def act_all(url: str) -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(AGENTS):
                tasks.start_soon(act, url, number)

    with gateway(env, tmp_path, flags) as url:
        anyio.run(act_all, url)
    after = [tree_of(folder) for folder in folders]

    for number, session in enumerate(sessions):
        places = [answer.meta["reversi/step"] for answer in answers[number]]
        assert places == [{"run": f"run_{number}", "step": step} for step in range(CALLS)]
        told = [json.dumps(answer.structured_content) for answer in answers[number]]
        assert all(arguments["path"] in text for (_, arguments), text in zip(session, told, strict=True))
        steps = list_steps(f"run_{number}")
        assert [(step.tool, step.state) for step in steps] == [(tool, StepState.SUCCEEDED) for tool, _ in session]
        assert (folders[number] / "kept.txt").read_text().startswith((f"agent {number},", f"of agent {number} "))

    check_each_alone(folders, before, after, lambda number: roll_back(env, tmp_path, f"run_{number}"))


def roll_back(env: dict[str, str], folder: Path, run_id: str) -> None:
    command = [sys.executable, "-m", "reversi_site.cli", "rollback", run_id]
    done = subprocess.run(
        command, env={**os.environ, **env}, cwd=folder, capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def check_each_alone(
    folders: list[Path], before: list[Tree], after: list[Tree], roll_back_one: Callable[[int], None]
) -> None:
    """Take back some of the agents one by one: theirs is as before, everybody else's as it was left."""
    expected = list(after)
    for number in (3, 0, 10):
        roll_back_one(number)
        expected[number] = before[number]
        assert [tree_of(folder) for folder in folders] == expected
