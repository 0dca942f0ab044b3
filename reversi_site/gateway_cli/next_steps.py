"""What was set up, and what a person does next: review the drafts, start the gateway, tell the MCP client."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manifests_registry.core.drafting import Draft, Drafting
from reversi_site.cli.output import counted
from reversi_site.gateway_cli.new_files import Files, NewGateway

COMMAND = "reversi-gateway"
MOST_LEFT_OUT = 10


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was set up."""

    gateway: NewGateway
    files: Files
    drafting: Drafting | None

    @property
    def drafts(self) -> Sequence[Draft]:
        """The drafted manifests."""
        return self.drafting.drafts if self.drafting else ()

    @property
    def arguments(self) -> Sequence[str]:
        """How the gateway is started from anywhere, on the store that `reversi` uses here."""
        data = self.gateway.base / os.environ.get("REVERSI_DATA", "reversi-data")
        return ("--config", str(self.gateway.configuration), "--data", str(data))

    @property
    def client(self) -> Mapping[str, Any]:
        """The entry in the settings of an MCP client; clients often do not search where the shell does."""
        installed = Path(sys.executable).with_name(COMMAND)
        command = str(installed) if installed.exists() else COMMAND
        return {"mcpServers": {self._name: {"command": command, "args": list(self.arguments)}}}

    @property
    def _name(self) -> str:
        """What the entry is called: two gateways in one client must not share a name."""
        if self.drafting is not None:
            return self.drafting.upstream
        return "reversi" if self.gateway.connector is None else self.gateway.connector.name


def outcome_document(outcome: Outcome) -> dict[str, Any]:
    """Return the outcome as one document."""
    spec, connector = outcome.gateway.spec, outcome.gateway.connector
    return {
        "files": [str(path) for path in outcome.files],
        "upstream": None if spec is None else spec.name,
        "connector": None if connector is None else connector.name,
        "drafts": [_draft_document(draft) for draft in outcome.drafts],
        "left_out": [
            {"tool": left.name, "reason": left.reason}
            for left in (outcome.drafting.left_out if outcome.drafting else ())
        ],
        "command": [COMMAND, *outcome.arguments],
        "client": outcome.client,
    }


def _draft_document(draft: Draft) -> dict[str, Any]:
    return {
        "tool": draft.tool,
        "effect": draft.judgement.effect.value,
        "reason": draft.judgement.reason,
        "proposed_undo": None if draft.proposal is None else draft.proposal.tool,
    }


def outcome_lines(outcome: Outcome) -> Iterator[str]:
    """Return the outcome for a person."""
    for path in outcome.files:
        yield f"wrote {_near(outcome, path)}"
    if outcome.drafting is not None:
        yield from _drafted(outcome.drafting)
    if outcome.drafting is not None:
        yield "Calls of a drafted tool are refused (the manifest for <tool> is a draft) until you approve it;"
        yield "with --mode observe they are made and recorded, and no rollback will undo them."
    yield ""
    yield "Next:"
    for number, step in enumerate(_steps(outcome), start=1):
        yield f"{number}. {step}"
    yield from json.dumps(outcome.client, indent=2, ensure_ascii=False).splitlines()


def _drafted(drafting: Drafting) -> Iterator[str]:
    reading = sum(draft.judgement.is_reading for draft in drafting.drafts)
    proposed = sum(draft.proposal is not None for draft in drafting.drafts)
    changing = len(drafting.drafts) - reading
    yield (
        f"drafted {counted(len(drafting.drafts), 'tool')}: {reading} read_only on the server's word, "
        f"{changing} irreversible, {proposed} of them with a proposed undo"
    )
    for left in drafting.left_out[:MOST_LEFT_OUT]:
        yield f"left out {json.dumps(left.name, ensure_ascii=False)}: {left.reason}"
    if len(drafting.left_out) > MOST_LEFT_OUT:
        yield f"left out {len(drafting.left_out) - MOST_LEFT_OUT} more; the drafts name them"


def _steps(outcome: Outcome) -> Iterator[str]:
    manifests = shlex.quote(str(_near(outcome, outcome.gateway.manifests)))
    if outcome.drafting is not None:
        yield f"Review the drafts in {manifests}: correct effects, complete undos, set status: approved."
    yield f"Check them: reversi validate {manifests}"
    yield f"Start the gateway: {shlex.join([COMMAND, *outcome.arguments])}"
    yield f"Take back what was done through it: {shlex.join(['reversi', *outcome.arguments, 'rollback', '--last'])}"
    yield "Have an MCP client start the gateway, with this in its settings in place of the server itself:"


def _near(outcome: Outcome, path: Path) -> Path:
    return path.relative_to(outcome.gateway.base) if path.is_relative_to(outcome.gateway.base) else path
