"""The doors to the tools: who runs an undo, who reads the world, and the four ways an undo ends (D27).

An undo must go where the call went: two upstreams may offer a tool of one name. So whoever works on a step asks for the
tools as they are at the step's upstream (`Tools.at`), and everything else goes by a tool's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias


@dataclass(frozen=True, slots=True)
class UndoCall:
    """One undo, as it is sent."""

    run_id: str
    step: int
    tool: str
    original_tool: str
    args: Mapping[str, Any]
    idempotency_key: str
    timeout_ms: int
    is_overwrite_allowed: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the call as a compensator gets it on its standard input."""
        call = {
            "run_id": self.run_id,
            "step": self.step,
            "tool": self.tool,
            "original_tool": self.original_tool,
            "args": dict(self.args),
            "idempotency_key": self.idempotency_key,
        }
        return {**call, "overwrite": True} if self.is_overwrite_allowed else call


@dataclass(frozen=True, slots=True)
class Undone:
    """The tool answered that it did what was asked. Only a read-back can tell whether that is so."""


@dataclass(frozen=True, slots=True)
class UndoFailed:
    """The undo definitely did not happen."""

    error: str


@dataclass(frozen=True, slots=True)
class UndoNotRun:
    """This send never reached the tool: a failure that says nothing about what earlier sends did."""

    error: str


@dataclass(frozen=True, slots=True)
class UndoUnknown:
    """The undo may or may not have happened."""

    error: str


UndoAnswer: TypeAlias = Undone | UndoFailed | UndoNotRun | UndoUnknown


class ToolExecutor(Protocol):
    """Sends undo calls. Every declared way to end is an answer; an exception is a bug and leaves the step in doubt."""

    def can_run(self, tool: str) -> bool:
        """Whether this executor reaches the tool."""

    def honours_key(self, tool: str) -> bool:
        """Whether a repeat with the same key cannot take effect twice."""

    def compensate(self, call: UndoCall) -> UndoAnswer:
        """Send the call and say how it ended, within the call's time."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a read answered."""

    value: Any


@dataclass(frozen=True, slots=True)
class ReadFailed:
    """A read gave no answer, and why; `error` is the tool's own text where it gave one."""

    error: str


class ToolReader(Protocol):
    """Makes read-only calls."""

    def can_read(self, tool: str) -> bool:
        """Whether this reader reaches the tool."""

    def read(self, tool: str, arguments: Mapping[str, Any], *, timeout_ms: int) -> Answer | ReadFailed:
        """Call the tool and return its answer."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What a rollback works with; without a reader declared read-backs stay open.

    `waits_for` names a session whose tools only another process reaches: the gateway that holds it, while it lasts.
    `is_reaching` is false where nothing is configured that could run an undo.
    """

    executor: ToolExecutor
    reader: ToolReader | None = None
    upstreams: Callable[[str], Tools] | None = None
    waits_for: str | None = None
    is_reaching: bool = True

    def at(self, upstream: str) -> Tools:
        """Return the tools as they are for steps whose calls went to this upstream."""
        return self if self.upstreams is None else self.upstreams(upstream)

    def can_run(self, tool: str, upstream: str) -> bool:
        """Whether an undo of a step of this upstream can be run, here or by the gateway that holds its session."""
        there = self.at(upstream)
        return there.executor.can_run(tool) or there.waits_for is not None

    def can_read(self, tool: str) -> bool:
        """Whether there is a reader for the tool."""
        return self.reader is not None and self.reader.can_read(tool)

    def read(self, tool: str, arguments: Mapping[str, Any], *, timeout_ms: int) -> Answer | ReadFailed:
        """Read through the reader, if there is one."""
        if self.reader is None:
            return ReadFailed(f"nothing can read {tool}")
        return self.reader.read(tool, arguments, timeout_ms=timeout_ms)


class Nobody:
    """An executor that reaches no tool."""

    def can_run(self, tool: str) -> bool:
        """Reach nothing."""
        return False

    def honours_key(self, tool: str) -> bool:
        """Promise nothing."""
        return False

    def compensate(self, call: UndoCall) -> UndoAnswer:
        """Send nothing."""
        return UndoNotRun(f"nothing can run {call.tool}")


NO_TOOLS = Tools(Nobody(), is_reaching=False)


def why_not_here(tool: str, tools: Tools) -> str:
    """Say why nobody here runs an undo."""
    if tools.waits_for is None:
        return f"nothing can run {tool}"
    return f"waiting for executor: the session of {tools.waits_for} is live in its gateway, or has ended"
