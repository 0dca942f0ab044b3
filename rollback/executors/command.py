"""Undo, check and read through configured commands (D27).

A compensator gets the call as JSON on its standard input and must honour its idempotency key. Exit 0 means undone; 75,
death by a signal or a time-out mean that nobody knows; any other exit means that the undo did not happen. A reader
gets `{"tool", "arguments"}` and prints the tool's answer as JSON.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from rollback.core.ports import (
    Answer,
    ReadFailed,
    ToolExecutor,
    UndoAnswer,
    UndoCall,
    UndoFailed,
    Undone,
    UndoNotRun,
    UndoUnknown,
)
from rollback.executors.process import MOST_OUTPUT, Ended, How, run_command, split_command

EXIT_UNKNOWN = 75
SHORTEST_CHECK_MS = 1_000

__all__ = ["EXIT_UNKNOWN", "CheckingExecutor", "CommandExecutor", "CommandReader", "split_command"]


@dataclass(frozen=True, slots=True)
class CommandExecutor:
    """Hands every undo to one command."""

    argv: Sequence[str]
    cwd: str | None = None

    def can_run(self, tool: str) -> bool:
        """Take any tool: only the command knows which it serves."""
        return True

    def honours_key(self, tool: str) -> bool:
        """Rely on the command to honour the key, as its contract says."""
        return True

    def compensate(self, call: UndoCall) -> UndoAnswer:
        """Run the command for the call."""
        ended = run_command(self.argv, stdin=_json(call.to_json()), timeout_ms=call.timeout_ms, cwd=self.cwd)
        match ended.how:
            case How.EXITED if ended.code == 0:
                return Undone()
            case How.EXITED if ended.code == EXIT_UNKNOWN:
                return UndoUnknown(_words(ended))
            case How.EXITED:
                return UndoFailed(_words(ended))
            case How.NOT_STARTED:
                return UndoNotRun(_words(ended))
            case How.KILLED | How.TIMED_OUT:
                return UndoUnknown(_words(ended))
            case _:
                assert_never(ended.how)


@dataclass(frozen=True, slots=True)
class CheckingExecutor:
    """Has a second command confirm each undo; anything but its exit 0 makes the undo fail."""

    executor: ToolExecutor
    argv: Sequence[str]
    cwd: str | None = None

    def can_run(self, tool: str) -> bool:
        """Whether the executor behind reaches the tool."""
        return self.executor.can_run(tool)

    def honours_key(self, tool: str) -> bool:
        """Whether the executor behind honours the key."""
        return self.executor.honours_key(tool)

    def compensate(self, call: UndoCall) -> UndoAnswer:
        """Send the call, then let the command look."""
        begun = time.monotonic()
        answer = self.executor.compensate(call)
        if not isinstance(answer, Undone):
            return answer
        # Both share the call's time: the lease under which they run covers no more.
        spent_ms = round((time.monotonic() - begun) * 1000)
        left_ms = max(SHORTEST_CHECK_MS, call.timeout_ms - spent_ms)
        ended = run_command(self.argv, stdin=_json(call.to_json()), timeout_ms=left_ms, cwd=self.cwd)
        if ended.how is How.EXITED and ended.code == 0:
            return answer
        error = f"the undo was answered, but its check failed: {_words(ended)}"
        # It may have worked all the same: a repeat with the key does no harm, another undo in its place would.
        return UndoUnknown(error)


@dataclass(frozen=True, slots=True)
class CommandReader:
    """Hands every read to one command."""

    argv: Sequence[str]
    cwd: str | None = None

    def can_read(self, tool: str) -> bool:
        """Take any tool: only the command knows which it serves."""
        return True

    def read(self, tool: str, arguments: Mapping[str, Any], *, timeout_ms: int) -> Answer | ReadFailed:
        """Run the command and take what it prints for the answer."""
        asked = _json({"tool": tool, "arguments": dict(arguments)})
        ended = run_command(self.argv, stdin=asked, timeout_ms=timeout_ms, cwd=self.cwd)
        if ended.how is not How.EXITED or ended.code != 0:
            return ReadFailed(_words(ended))
        return _answer(ended.output)


def _answer(output: bytes) -> Answer | ReadFailed:
    if len(output) > MOST_OUTPUT:
        return ReadFailed(f"the reader printed more than {MOST_OUTPUT} bytes")
    try:
        return Answer(json.loads(output))
    except (ValueError, RecursionError):
        return ReadFailed("the reader printed something that is not JSON")


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value).encode("ascii")


def _words(ended: Ended) -> str:
    match ended.how:
        case How.EXITED:
            return ended.last_line or f"exit {ended.code}"
        case How.KILLED:
            return f"the command was killed by signal {-ended.code}"
        case How.TIMED_OUT:
            return "the command did not end in time and was killed"
        case How.NOT_STARTED:
            return ended.last_line
        case _:
            assert_never(ended.how)
