"""The agent: makes its calls through the one way in which calls are made, and nothing else."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from approvals.core.errors import CallBlocked
from gateway.operations.calls import call
from ledger.operations.runs import open_run
from reversi_sdk.errors import EffectUncertainError, ToolError
from reversi_site.demo.stage import Stage
from reversi_site.demo.tree import BINARY
from reversi_site.identity import local_principal

Args = Mapping[str, Any]

TIDYING: Sequence[tuple[str, Args]] = (
    ("fs.list_dir", {"path": "."}),
    ("fs.read_file", {"path": "README.txt"}),
    ("fs.write_file", {"path": "README.txt", "content": "Rewritten by an agent.\n"}),
    ("fs.make_dir", {"path": "reports/2026/q3"}),
    ("fs.write_file", {"path": "reports/2026/q3/summary.md", "content": "# Q3\n\nEverything is fine – wirklich.\n"}),
    ("fs.write_file", {"path": "reports/2026/q3/Übersicht 📊.md", "content": "| Größe | 数 |\n"}),
    (
        "fs.write_file",
        {"path": "images/logo.png", "content": base64.b64encode(BINARY[::-1] * 2).decode(), "encoding": "base64"},
    ),
    ("fs.move_file", {"source": "notes/Größe – Übersicht.md", "destination": "reports/2026/q3/Größe.md"}),
    ("fs.delete_file", {"path": "scripts/run.sh"}),
    ("fs.write_file", {"path": "scripts/run.sh", "content": "#!/bin/sh\nrm -rf build\n"}),
    ("fs.delete_file", {"path": "config/app.ini"}),
    ("fs.move_file", {"source": "images", "destination": "pictures"}),
    ("fs.write_file", {"path": "pictures/logo.png", "content": "no longer a picture\n"}),
    ("fs.write_file", {"path": "../outside.txt", "content": "this must not exist\n"}),
    ("fs.write_file", {"path": "README.txt", "content": "Rewritten a second time.\n"}),
)
BILLING: Sequence[tuple[str, Args]] = (
    ("fs.write_file", {"path": "keep/empty/invoice-12.txt", "content": "order 12: 2600 cents\n"}),
    ("payments.charge", {"amount": 1900}),
    ("payments.charge", {"amount": 700, "loses_answer": True}),
    ("tickets.open", {"title": "Pack order 12"}),
    ("mail.send", {"to": "customer@example.org", "subject": "Your invoice for order 12"}),
)


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent at work in one run."""

    stage: Stage
    run_id: str

    def call(self, tool: str, args: Args) -> str:
        """Make one call and return, in words, how it ended."""

        def execute(sent: dict[str, Any], key: str | None) -> Any:
            return self.stage.run_tool(tool, sent, key)

        try:
            call(self.run_id, tool, args, execute=execute, principal=local_principal())
        except CallBlocked as error:
            return f"blocked: {error}"
        except ToolError as error:
            return f"failed: {error}"
        except EffectUncertainError as error:
            return f"uncertain: {error}"
        return "succeeded"


def start_agent(stage: Stage, *, actor: str, mode: str, scope: tuple[str, ...], reason: str, now: datetime) -> Agent:
    """Open a run for an agent."""
    run, _ = open_run(principal=local_principal(), now=now, actor=actor, mode=mode, scope=scope, reason=reason)
    return Agent(stage, run.id)
