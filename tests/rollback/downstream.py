"""A shop and its files as the network would show them: what took effect is counted, and faults are planned.

It stands at the edge: everything on our side of it is the real thing.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from reversi_site.kit.transactions import require_no_transaction
from rollback.core.ports import (
    Answer,
    ReadFailed,
    Tools,
    UndoAnswer,
    UndoCall,
    UndoFailed,
    Undone,
    UndoNotRun,
    UndoUnknown,
)


class Killed(BaseException):
    """The process dies here."""


class Fault(Enum):
    """What goes wrong with one undo request."""

    LOST_BEFORE = "lost before"
    LOST_AFTER = "lost after"
    REFUSED = "refused"
    DOWN = "down"
    LIE = "lie"
    KILLED_BEFORE = "killed before"
    KILLED_AFTER = "killed after"


_LOST = UndoUnknown("the connection was lost")
_WITHOUT_EFFECT = (Fault.LOST_BEFORE, Fault.REFUSED, Fault.DOWN, Fault.LIE)
_ANSWERS: Mapping[Fault, UndoAnswer] = {
    Fault.LOST_BEFORE: _LOST,
    Fault.LOST_AFTER: _LOST,
    Fault.REFUSED: UndoFailed("card expired"),
    Fault.DOWN: UndoNotRun("nothing was sent: it is down"),
    Fault.LIE: Undone(),
}


@dataclass
class Downstream:
    """The executor, the reader and the world behind them.

    With `is_keyed` a key is answered from memory the second time. `stale_reads` is how many reads still show the
    world as it was before the latest undo.
    """

    is_keyed: bool = False
    is_readable: bool = True
    runs: frozenset[str] | None = None
    stale_reads: int = 0
    state: dict[str, str] = field(default_factory=dict)
    undone: Counter[str] = field(default_factory=Counter)
    requests: list[UndoCall] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    faults: deque[Fault | None] = field(default_factory=deque)
    read_faults: deque[str | None] = field(default_factory=deque)
    keys: set[str] = field(default_factory=set)

    @property
    def tools(self) -> Tools:
        """What a rollback gets."""
        return Tools(self, self if self.is_readable else None)

    def place(self, thing: str) -> dict[str, Any]:
        """Let the agent's call take effect."""
        self.state[thing] = "placed"
        return {"id": thing}

    def can_run(self, tool: str) -> bool:
        return self.runs is None or tool in self.runs

    def honours_key(self, tool: str) -> bool:
        return self.is_keyed

    def compensate(self, call: UndoCall) -> UndoAnswer:
        require_no_transaction()
        self.requests.append(call)
        fault = self.faults.popleft() if self.faults else None
        if fault is Fault.KILLED_BEFORE:
            raise Killed
        if fault not in _WITHOUT_EFFECT:
            self._take_effect(call)
        if fault is Fault.KILLED_AFTER:
            raise Killed
        return Undone() if fault is None else _ANSWERS[fault]

    def _take_effect(self, call: UndoCall) -> None:
        if self.is_keyed and call.idempotency_key in self.keys:
            return
        self.keys.add(call.idempotency_key)
        thing = str(call.args["id"])
        self.undone[thing] += 1
        self.state[thing] = "gone"

    def can_read(self, tool: str) -> bool:
        return self.is_readable

    def read(self, tool: str, arguments: Mapping[str, Any], *, timeout_ms: int) -> Answer | ReadFailed:
        require_no_transaction()
        self.reads.append(tool)
        fault = self.read_faults.popleft() if self.read_faults else None
        if fault is not None:
            return ReadFailed(fault)
        if self.stale_reads:
            self.stale_reads -= 1
            return Answer({"state": "placed"})
        return Answer({"state": self.state.get(str(arguments["id"]))})
