"""A shop in a folder: what agents did there, and what rollbacks change, is seen by every process that knows the folder.

Workers and the console reach it through `REVERSI_TOOLS`, which names `tools` here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manifests_registry.core.snapshot import Snapshot
from rollback.core.ports import Answer, ReadFailed, Tools, UndoAnswer, UndoCall, UndoFailed, Undone
from tests.manifests_registry.factories import make_snapshot

FOLDER = "TEST_WORLD"
TOOLS = "tests.console.world.tools"
BROKEN = "broken"
UNDOS = frozenset({"shop.cancel", "shop.unpin"})


@dataclass(frozen=True, slots=True)
class World:
    """Things by their ids, each a file."""

    folder: Path

    def put(self, thing: str, **facts: Any) -> dict[str, Any]:
        """Write a thing down and return what the shop answers."""
        facts = {"id": thing, **self.get(thing), **facts}
        (self.folder / f"{thing}.json").write_text(json.dumps(facts), encoding="utf-8")
        return facts

    def get(self, thing: str) -> dict[str, Any]:
        """Return what is known of a thing."""
        path = self.folder / f"{thing}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def can_run(self, tool: str) -> bool:
        return tool in UNDOS

    def honours_key(self, tool: str) -> bool:
        return True

    def compensate(self, call: UndoCall) -> UndoAnswer:
        thing = str(call.args["id"])
        if self.get(thing).get(BROKEN):
            return UndoFailed("409: the order is locked by the warehouse")
        self.put(thing, state="gone")
        return Undone()

    def can_read(self, tool: str) -> bool:
        return tool == "shop.get"

    def read(self, tool: str, arguments: Mapping[str, Any], *, timeout_ms: int) -> Answer | ReadFailed:
        return Answer(self.get(str(arguments["id"])))


def tools() -> Tools:
    """Return what a worker reaches."""
    world = World(Path(os.environ[FOLDER]))
    return Tools(world, world)


def shop() -> Snapshot:
    """The shop's tools: read, changed with and without an undo, and with the agreement of people."""
    undo = {
        "tool": "shop.cancel",
        "argument_map": {"id": "$result.id"},
        "residue": ["the order number stays taken", "the customer got a confirmation mail"],
        "verification": {
            "tool": "shop.get",
            "arguments": {"id": "$result.id"},
            "expect": {"state": "gone"},
            "retries": 1,
            "backoff_ms": 1,
        },
    }
    pin = {"tool": "shop.unpin", "argument_map": {"id": "$args.id", "note": "$args.note"}, "kind": "inverse"}
    return make_snapshot(
        {"tool": "shop.get", "effect": "read_only", "permission": "shop:read"},
        {"tool": "shop.cancel", "effect": "idempotent", "compensation_only": True},
        {"tool": "shop.unpin", "effect": "idempotent", "compensation_only": True},
        {"tool": "shop.tag", "effect": "idempotent", "summary": "tag {{args.id}} as {{args.tag}}"},
        {
            "tool": "shop.order",
            "effect": "compensable",
            "compensation": undo,
            "summary": "order {{args.item}} for {{args.amount}} cents",
        },
        {
            "tool": "shop.pin",
            "effect": "reversible",
            "compensation": pin,
            "summary": "pin {{args.note}} to {{args.id}}",
        },
        {"tool": "mail.send", "effect": "irreversible", "permission": "mail:send", "summary": "mail {{args.to}}"},
        {
            "tool": "shop.wire",
            "effect": "compensable",
            "compensation": undo,
            "summary": "wire {{args.amount}} cents to {{args.iban}}",
            "approval": {"roles": ["finance"], "timeout": "2h"},
            "audit": {"redaction": ["$args.pin"]},
        },
    )
