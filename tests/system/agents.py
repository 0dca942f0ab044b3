"""An agent on real files through the real gate, journal and connector, and tools that fail on demand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from connectors.catalog import fs
from connectors.core.connector import Connector
from connectors.core.tool import CallContext
from gateway.operations.calls import call
from ledger.core.values import RunRecord
from ledger.operations.runs import open_run
from manifests_registry.core.snapshot import Entry, Snapshot, build_snapshot
from reversi_sdk.errors import ToolError
from reversi_sdk.manifests import manifest_checksum, manifest_from_normal, validate_manifest
from reversi_site.kit.clock import SystemClock
from rollback.core.ports import Tools, UndoAnswer, UndoCall, UndoFailed, Undone, UndoUnknown
from rollback.executors.connector import ConnectorExecutor, ConnectorReader

PRINCIPAL = "agent-a"


def snapshot_of(manifests: Iterable[Mapping[str, Any]]) -> Snapshot:
    """Return the manifests as the gate takes them; every one must be valid."""
    entries = []
    for manifest in manifests:
        normalized, errors = validate_manifest(manifest)
        assert normalized is not None, errors
        entries.append(Entry(manifest_from_normal(normalized), normalized, manifest_checksum(normalized), "test:1"))
    snapshot, problems = build_snapshot(entries)
    assert problems == ()
    return snapshot


@dataclass(slots=True)
class FileAgent:
    """Calls the tools of `fs` on one root in one run."""

    root: Path
    connector: Connector = field(init=False)
    run: RunRecord = field(init=False)
    snapshot: Snapshot = field(init=False)
    results: dict[int, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        self.connector = fs.build(self.root)
        self.snapshot = snapshot_of(self.connector.manifests())
        self.run, _ = open_run(principal=PRINCIPAL, scope=("fs:*",), now=SystemClock().now())

    def call(self, tool: str, **args: Any) -> int | None:
        """Make a call; returns its step's number, or None when the tool refused."""

        def execute(arguments: Mapping[str, Any], key: str | None) -> Any:
            return self.connector.call(tool, arguments, CallContext(idempotency_key=key))

        try:
            done = call(self.run.id, tool, args, execute=execute, principal=PRINCIPAL, snapshot=self.snapshot)
        except ToolError:
            return None
        self.results[done.step.number] = done.result
        return done.step.number

    def tools(self, faults: Mapping[int, list[str]] | None = None) -> Tools:
        """Return what a rollback of the run works with."""
        return Tools(FaultyExecutor(ConnectorExecutor(self.connector), faults or {}), ConnectorReader(self.connector))


@dataclass(slots=True)
class FaultyExecutor:
    """Plays the faults planned for a step, one a send, before it behaves; `sent` keeps what arrived."""

    inner: ConnectorExecutor
    faults: Mapping[int, list[str]]
    sent: list[UndoCall] = field(default_factory=list)

    def can_run(self, tool: str) -> bool:
        return self.inner.can_run(tool)

    def honours_key(self, tool: str) -> bool:
        return self.inner.honours_key(tool)

    def compensate(self, call: UndoCall) -> UndoAnswer:
        self.sent.append(call)
        planned = self.faults.get(call.step)
        match planned.pop(0) if planned else "":
            case "fails":
                return UndoFailed("the disk said no")
            case "lies":
                return Undone()
            case "lost before":
                return UndoUnknown("the answer was lost")
            case "lost after":
                self.inner.compensate(call)
                return UndoUnknown("the answer was lost")
            case _:
                return self.inner.compensate(call)
