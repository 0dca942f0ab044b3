"""Undo and read through upstreams, for whoever rolls back: workers, the command line, the gateway itself (D27).

`UpstreamExecutor` and `UpstreamReader` speak for one upstream. What the upstream does not offer, or not any more, goes
to whoever stands behind them: a connector in this process, or a command. Requests travel through a `Door` into an
event loop: a gateway's own, or that of a session which `gateway.sessions` opens for the purpose.

An undo carries its key in `_meta.idempotency_key` always, and as an argument where the tool's schema has one of that
name; a required confirmation is filled in (D41).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from gateway.core.inputs import confirmation_of, has_input
from gateway.core.results import value_of
from gateway.core.upstream_errors import UpstreamRefused, UpstreamUnavailable, raise_if_error
from reversi_sdk.errors import EffectUncertainError, ReversiError
from rollback.core.ports import (
    Answer,
    ReadFailed,
    ToolExecutor,
    ToolReader,
    UndoAnswer,
    UndoCall,
    UndoFailed,
    Undone,
    UndoNotRun,
    UndoUnknown,
)

KEY_INPUT = "idempotency_key"
OVERWRITE_META = "reversi/overwrite"
# Beyond the request's own time: for connecting, and for the way there and back.
MARGIN_S = 30.0
LIST_S = 60.0

T = TypeVar("T")


class Reached(Protocol):
    """The upstreams as they are asked inside the event loop; see `gateway.mcp.upstreams.Upstreams`."""

    async def offered_by(self, upstream: str, tool: str) -> Mapping[str, Any] | None:
        """Return the tool as the upstream lists it, None when it does not; raises UpstreamUnavailable."""

    async def count_tools(self, upstream: str) -> int:
        """Return how many tools the upstream lists; raises UpstreamUnavailable."""

    async def call_at(
        self,
        upstream: str,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        timeout_ms: int,
        idempotency_key: str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Call the tool at that upstream and no other."""


class Door(Protocol):
    """The way from a thread into the event loop that holds the upstreams."""

    def ask(self, question: Callable[[Reached], Awaitable[T]], *, within_s: float) -> T:
        """Have the question answered there; raises what it raises, and TimeoutError when the loop does not answer."""


@dataclass(frozen=True, slots=True)
class UpstreamExecutor:
    """Sends undos to one upstream, and to `behind` what it does not offer.

    `tools` are the names it is known to offer, None when nobody has seen its list.
    """

    upstream: str
    door: Door
    behind: ToolExecutor
    tools: frozenset[str] | None = None

    def can_run(self, tool: str) -> bool:
        """Whether the upstream is known to offer the tool, or might, or somebody behind does."""
        return self.tools is None or tool in self.tools or self.behind.can_run(tool)

    def honours_key(self, tool: str) -> bool:
        """Whether the tool takes its key as an argument; `_meta` alone proves nothing (D23)."""
        try:
            listed = self._listed(tool)
        except (ReversiError, TimeoutError):
            return False
        return self.behind.honours_key(tool) if listed is None else has_input(listed, KEY_INPUT)

    def compensate(self, call: UndoCall) -> UndoAnswer:
        """Send the undo; only what says so was definitely not done."""
        try:
            listed = self._listed(call.tool)
        except (ReversiError, TimeoutError) as error:
            return UndoNotRun(str(error) or f"nothing was sent: the upstream {self.upstream} could not be asked")
        if listed is None:
            return self._from_behind(call)
        return self._send(call, listed)

    def _from_behind(self, call: UndoCall) -> UndoAnswer:
        if self.behind.can_run(call.tool):
            return self.behind.compensate(call)
        return UndoNotRun(f"nothing was sent: the upstream {self.upstream} does not offer {call.tool}")

    def _send(self, call: UndoCall, listed: Mapping[str, Any]) -> UndoAnswer:
        arguments = _filled(call, listed)
        meta = {OVERWRITE_META: True} if call.is_overwrite_allowed else None

        async def send(reached: Reached) -> dict[str, Any]:
            return await reached.call_at(
                self.upstream,
                call.tool,
                arguments,
                timeout_ms=call.timeout_ms,
                idempotency_key=call.idempotency_key,
                meta=meta,
            )

        try:
            raise_if_error(self.door.ask(send, within_s=call.timeout_ms / 1000 + MARGIN_S))
        except (EffectUncertainError, TimeoutError) as error:
            return UndoUnknown(str(error) or f"the upstream {self.upstream} was not heard of again")
        except (UpstreamUnavailable, UpstreamRefused) as error:
            return UndoNotRun(str(error))
        except ReversiError as error:
            return UndoFailed(str(error))
        except Exception as error:  # noqa: BLE001  # whatever was raised, something may have been sent
            return UndoUnknown(f"{type(error).__name__}: {error}")
        return Undone()

    def _listed(self, tool: str) -> Mapping[str, Any] | None:
        return _listed_at(self.door, self.upstream, tool)


@dataclass(frozen=True, slots=True)
class UpstreamReader:
    """Reads through one upstream, and through `behind` what it does not offer."""

    upstream: str
    door: Door
    behind: ToolReader | None
    tools: frozenset[str] | None = None

    def can_read(self, tool: str) -> bool:
        """Whether the upstream is known to offer the tool, or might, or somebody behind reads through it."""
        is_behind = self.behind is not None and self.behind.can_read(tool)
        return self.tools is None or tool in self.tools or is_behind

    def read(self, tool: str, arguments: Mapping[str, Any], *, timeout_ms: int) -> Answer | ReadFailed:
        """Call the tool and return its value (D15); whatever goes wrong, a read has only failed."""
        try:
            if _listed_at(self.door, self.upstream, tool) is not None:
                return Answer(self._value(tool, arguments, timeout_ms))
        except Exception as error:  # noqa: BLE001  # a read changes nothing: any failure is only a failed read
            return ReadFailed(str(error) or type(error).__name__)
        if self.behind is not None and self.behind.can_read(tool):
            return self.behind.read(tool, arguments, timeout_ms=timeout_ms)
        return ReadFailed(f"the upstream {self.upstream} does not offer {tool}")

    def _value(self, tool: str, arguments: Mapping[str, Any], timeout_ms: int) -> Any:
        async def read(reached: Reached) -> dict[str, Any]:
            return await reached.call_at(self.upstream, tool, arguments, timeout_ms=timeout_ms)

        answer = self.door.ask(read, within_s=timeout_ms / 1000 + MARGIN_S)
        raise_if_error(answer)
        return value_of(answer)


def _listed_at(door: Door, upstream: str, tool: str) -> Mapping[str, Any] | None:
    async def look(reached: Reached) -> Mapping[str, Any] | None:
        return await reached.offered_by(upstream, tool)

    return door.ask(look, within_s=LIST_S)


def _filled(call: UndoCall, listed: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments with the key and the confirmation that the tool's schema asks for."""
    arguments = {**call.args, **confirmation_of(listed)}
    if has_input(listed, KEY_INPUT):
        arguments[KEY_INPUT] = call.idempotency_key
    return arguments
