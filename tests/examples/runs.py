"""Runs of an agent over the servers, undone again; every argument is by keyword."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.operations.calls import call
from ledger.operations.runs import open_run
from manifests_registry.core.snapshot import Snapshot
from manifests_registry.queries import current_snapshot
from reversi_sdk.errors import ToolError
from rollback.core.report import Bucket, Entry, Report
from rollback.queries import get_plan
from tests.examples.servers import World
from tests.examples.sessions import Calls
from tests.rollback.journal import AGENT, START, Ticking, roll_back

EXAMPLES = Path(__file__).parents[2] / "examples"


def manifests_of(name: str) -> Snapshot:
    """Return the manifests of an example."""
    return current_snapshot((EXAMPLES / name / "manifests.yaml",))


def upstream_of(tool: str) -> str:
    return "fs" if tool.startswith("fs.") else "server"


def play(*, world: World, calls: Calls, run_id: str = "run_x") -> list[str | None]:
    """Let the agent make the calls; returns for each the error that the tool reported, or None."""
    open_run(run_id=run_id, principal=AGENT, now=START, scope=("files:*", "memory:*"))
    return [play_one(world=world, tool=tool, args=args, run_id=run_id) for tool, args in calls]


def play_one(*, world: World, tool: str, args: dict[str, Any], run_id: str = "run_x") -> str | None:
    """Let the agent make one call."""

    def execute(arguments: dict[str, Any], key: str | None) -> Any:
        return world.run(tool, arguments)

    try:
        call(
            run_id,
            tool,
            args,
            execute=execute,
            reader=world.look,
            principal=AGENT,
            snapshot=manifests_of(world.example),
            upstream_of=upstream_of,
            clock=Ticking(),
        )
    except ToolError as error:
        return str(error)
    return None


@dataclass(frozen=True)
class Undone:
    """What a rollback reported."""

    report: Report

    @property
    def named(self) -> dict[int, Entry]:
        """The steps that the report does not call undone or harmless."""
        fine = (Bucket.COMPENSATED, Bucket.SKIPPED)
        return {entry.step: entry for entry in self.report.entries if entry.bucket not in fine}

    @property
    def reasons(self) -> dict[int, str]:
        """Why, for each of these."""
        return {number: f"{entry.bucket.value}: {entry.reason}" for number, entry in sorted(self.named.items())}

    @property
    def verified(self) -> set[int]:
        """The steps that were undone and read back."""
        return {entry.step for entry in self.report.entries if entry.read_back == "verified"}


def undo(*, world: World, run_id: str = "run_x", **options: Any) -> Undone:
    """Roll the run back."""
    return Undone(roll_back(downstream=world, run_id=run_id, **options))


def plan(*, run_id: str = "run_x") -> dict[int, str]:
    """Return what the plan says of each step that it will not simply undo or skip."""
    planned = get_plan(run_id=run_id, now=START).actions
    told = {action.step: f"{action.kind.value}: {action.reason}" for action in planned}
    return {number: text for number, text in told.items() if not text.startswith(("compensate: None", "skip: "))}
