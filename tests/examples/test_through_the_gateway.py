"""The unmodified official servers behind a real gateway: an agent's session through the official client, taken back.

Nothing is in this process but the client: the gateway, the servers and whoever rolls back are processes of their own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp_types import Implementation

from tests.connectors.trees import tree_of
from tests.databases import Database
from tests.examples.graphs import graph_of, write_graph
from tests.examples.runs import EXAMPLES
from tests.examples.sessions import (
    FIRST_ENTITIES,
    FIRST_RELATIONS,
    LOST_RELATIONS,
    Calls,
    file_session,
    furnish,
    memory_session,
)
from tests.npm_servers import filesystem_server, memory_server
from tests.postgres import REPOSITORY

ERAS = ("legacy", "2026-07-28")


@dataclass
class Gateway:
    """A gateway before one server, on a store of its own."""

    env: dict[str, str]
    folder: Path
    arguments: list[str] = field(default_factory=list)

    def play(self, calls: Calls, *, era: str = "legacy", more: Sequence[str] = ()) -> list[Any]:
        """Make the calls through the official client, and return what was answered."""
        return anyio.run(self._play, calls, era, list(more))

    async def _play(self, calls: Calls, era: str, more: list[str]) -> list[Any]:
        command = [sys.executable, "-m", "reversi_site.gateway_cli", *self.arguments, *more]
        server = StdioServerParameters(command=command[0], args=command[1:], env=self.env, cwd=self.folder)
        who = Implementation(name="scripted-agent", version="1")
        with (self.folder / "gateway.log").open("a") as log:
            wire = stdio_client(server, errlog=log)
            async with Client(wire, mode=era, client_info=who, cache=None) as client:
                return [await client.call_tool(tool, arguments) for tool, arguments in calls]

    def reversi(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "reversi_site.cli", *arguments]
        return subprocess.run(
            command, cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=120, check=False
        )

    def report(self, *arguments: str) -> dict[str, Any]:
        """Return what a command prints as JSON."""
        done = self.reversi(*arguments, "--json")
        assert done.stdout, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found


@pytest.fixture
def world(db: Database, tmp_path: Path) -> Callable[..., Gateway]:
    folder = tmp_path / "gateway"
    folder.mkdir()

    def make(example: str, command: Sequence[str], *more: str, **environ: str) -> Gateway:
        env = {**db.env(), "REVERSI_DATA": str(tmp_path / "data"), "PYTHONPATH": str(REPOSITORY), **environ}
        arguments = ["--manifests", str(EXAMPLES / example / "manifests.yaml"), "--upstream-cmd", command[0]]
        arguments += [each for word in command[1:] for each in ("--upstream-arg", word)]
        return Gateway({**os.environ, **env}, folder, [*arguments, *more])

    return make


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    furnish(folder)
    return folder


def steps_named(report: dict[str, Any]) -> set[int]:
    listed = {line["step"] for bucket in ("failed", "deferred") for line in report[bucket]}
    plain = ("unrecoverable", "unresolved", "unmanifested", "awaiting_approval", "unverified")
    return listed | {number for bucket in plain for number in report[bucket]}


def connector(root: Path, tmp_path: Path) -> list[str]:
    return ["--connector", "fs", "--root", str(root), "--backup-dir", str(tmp_path / "backups")]


@pytest.mark.parametrize("era", ERAS)
def test_what_an_agent_did_to_files_is_taken_back_to_the_byte(
    world: Callable[..., Gateway], root: Path, tmp_path: Path, era: str
) -> None:
    before, session = tree_of(root), file_session(root)
    gateway = world("filesystem", filesystem_server(root), *connector(root, tmp_path))

    answers = gateway.play(session, era=era)
    after = tree_of(root)
    plan = gateway.report("plan", "--last")
    report = gateway.report("rollback", "--last")

    assert len(session) >= 20
    assert after != before
    assert all("reversi/step" in answer.meta for answer in answers)
    assert [answer.meta["reversi/step"]["step"] for answer in answers] == list(range(len(session)))
    assert plan["fully_reversible"] is True
    assert (report["complete"], steps_named(report)) == (True, set())
    assert tree_of(root) == before


def test_without_the_connector_every_difference_belongs_to_a_step_that_is_named(
    world: Callable[..., Gateway], root: Path
) -> None:
    before, session = tree_of(root), file_session(root)
    gateway = world("filesystem", filesystem_server(root))

    gateway.play(session)
    plan = gateway.report("plan", "--last")
    report = gateway.report("rollback", "--last")
    after = tree_of(root)

    planned = {action["step"] for action in plan["actions"] if is_named(action)}
    different = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    told = {path for number in steps_named(report) for path in paths_of(session[number], root)}
    assert different
    assert (plan["fully_reversible"], report["complete"]) == (False, False)
    assert steps_named(report) <= planned
    assert {path for path in different if not any(is_along(path, other) for other in told)} == set()


def is_named(action: dict[str, Any]) -> bool:
    """Whether the plan says of a step that it will not simply be undone."""
    return action["kind"] not in ("compensate", "skip") or (action["kind"] == "compensate" and action["reason"])


def paths_of(call: tuple[str, dict[str, Any]], root: Path) -> set[str]:
    names = ("path", "source", "destination")
    return {str(Path(call[1][name]).relative_to(root)) for name in names if name in call[1]}


def is_along(path: str, other: str) -> bool:
    return f"{path}/".startswith(f"{other}/") or f"{other}/".startswith(f"{path}/")


@pytest.mark.parametrize("era", ERAS)
def test_what_an_agent_did_to_a_graph_is_taken_back_but_for_what_the_plan_named(
    world: Callable[..., Gateway], tmp_path: Path, era: str
) -> None:
    path = tmp_path / "graph.jsonl"
    write_graph(path, FIRST_ENTITIES, FIRST_RELATIONS)
    before, session = graph_of(path), memory_session()
    gateway = world("memory", memory_server(), MEMORY_FILE_PATH=str(path))

    gateway.play(session, era=era)
    changed = graph_of(path)
    plan = gateway.report("plan", "--last")
    report = gateway.report("rollback", "--last")
    after = graph_of(path)

    assert len(session) >= 20
    assert changed != before
    deleting = {number for number, (tool, _) in enumerate(session) if tool == "delete_entities"}
    residue = {action["step"] for action in plan["actions"] if any("relation" in each for each in action["residue"])}
    assert deleting <= residue
    assert (report["complete"], steps_named(report)) == (True, set())
    assert deleting <= {line["step"] for line in report["residue"]}
    assert after.entities == before.entities
    assert set(before.relations - after.relations) == LOST_RELATIONS
    assert after.relations <= before.relations


def test_an_operator_rolls_back_from_the_gateway_itself(
    world: Callable[..., Gateway], root: Path, tmp_path: Path
) -> None:
    before = tree_of(root)
    gateway = world("filesystem", filesystem_server(root), *connector(root, tmp_path))
    call = ("reversi.execute_rollback", {"confirm": True})

    *_, answer = gateway.play([*file_session(root), call], more=["--operator"])

    assert answer.is_error is not True, answer
    assert answer.structured_content["report"]["complete"] is True
    assert tree_of(root) == before
