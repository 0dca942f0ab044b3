"""Several executors or readers as one: the first that reaches a tool does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollback.core.ports import Answer, Nobody, ReadFailed, ToolExecutor, ToolReader, UndoAnswer, UndoCall


class CombinedExecutor:
    """Asks its executors in order."""

    def __init__(self, *executors: ToolExecutor) -> None:
        self._executors = executors

    def can_run(self, tool: str) -> bool:
        """Whether one of them reaches the tool."""
        return any(executor.can_run(tool) for executor in self._executors)

    def honours_key(self, tool: str) -> bool:
        """Whether the one that would run the tool honours the key."""
        return self._of(tool).honours_key(tool)

    def compensate(self, call: UndoCall) -> UndoAnswer:
        """Send the call through the first that reaches its tool."""
        return self._of(call.tool).compensate(call)

    def _of(self, tool: str) -> ToolExecutor:
        return next((executor for executor in self._executors if executor.can_run(tool)), Nobody())


class CombinedReader:
    """Asks its readers in order."""

    def __init__(self, *readers: ToolReader) -> None:
        self._readers = readers

    def can_read(self, tool: str) -> bool:
        """Whether one of them reaches the tool."""
        return any(reader.can_read(tool) for reader in self._readers)

    def read(self, tool: str, arguments: Mapping[str, Any], *, timeout_ms: int) -> Answer | ReadFailed:
        """Read through the first that reaches the tool."""
        reader = next((each for each in self._readers if each.can_read(tool)), None)
        if reader is None:
            return ReadFailed(f"nothing can read {tool}")
        return reader.read(tool, arguments, timeout_ms=timeout_ms)
