"""The wire to an upstream that is a process: JSON lines over its standard input and output.

The library's own reader keeps an unfinished line without bound and logs every line that it cannot read, so a broken
server could fill memory or disk. Here a line may have 16 MiB, a run of more than 200 unreadable lines ends the wire,
and so does an upstream that asks us more than it reads. What it says on standard error is read away, its end kept for
messages.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from types import MappingProxyType
from typing import Any

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification, ProgressNotificationParams, RequestId, jsonrpc_message_adapter
from pydantic import ValidationError

from gateway.core.upstream_specs import UpstreamSpec
from gateway.mcp.child_process import Child, start_child
from gateway.mcp.outbox import Outbox
from gateway.mcp.own_errors import Trouble, own_error

LINE_LIMIT = 16 * 1024 * 1024
GARBAGE_LIMIT = 200
EXIT_S = 0.5
EXCERPT = 200
COMPLAINTS = 5
HEARD = frozenset({"notifications/cancelled", "notifications/tools/list_changed"})

logger = logging.getLogger(__name__)

Incoming = SessionMessage | Exception
_CLOSED = (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)


class StdioWire:
    """An open wire. `is_over` is told before whoever waits for an answer hears of the end."""

    made_by_library: Mapping[int, Trouble] = MappingProxyType({})

    def __init__(self, spec: UpstreamSpec, child: Child) -> None:
        self._spec, self._child = spec, child
        self._to_session, self.incoming = anyio.create_memory_object_stream[Incoming](16)
        self.outgoing = Outbox(child.input, on_full=self._overflow)
        self._lines = Lines(spec.name)
        self.trouble: str | None = None
        self.is_over = False

    def describe_end(self) -> str:
        """Say how the wire ended, with the last words of the process."""
        ended = self.trouble or self._child.death or "closed its output"
        return f"{ended} ({self._child.last_line})" if self._child.last_line else ended

    def settle(self, call: RequestId) -> bool:
        """Tell of a request that has ended whether it certainly never arrived."""
        return self.outgoing.settle(call)

    async def read(self) -> None:
        """Pass on what the process says, then read the rest away."""
        with suppress(*_CLOSED):
            await self._pass_on()
        if self._lines.trouble is None:
            # How it exited belongs to what is said of it; a process that only closed its output is not waited for.
            await self._child.has_exited(within_s=EXIT_S)
        self._end(self._lines.trouble)
        with suppress(*_CLOSED):
            while await self._child.output.read():
                continue

    async def _pass_on(self) -> None:
        while chunk := await self._child.output.read():
            for line in self._lines.take(chunk):
                if _is_wanted(line):
                    await self._to_session.send(line)
            if self._lines.trouble is not None:
                return

    async def write(self) -> None:
        """Write what the session says, until the process takes nothing more."""
        with suppress(*_CLOSED):
            await self.outgoing.run()
        self.outgoing.close()
        await self._child.has_exited(within_s=EXIT_S)
        self._end(None if self._child.death else "closed its input")

    def close(self) -> None:
        """Take and pass on nothing more."""
        self.outgoing.close()
        self.incoming.close()
        self._to_session.close()

    def _overflow(self) -> None:
        self._end("does not read what it is sent")

    def _end(self, trouble: str | None) -> None:
        if not self.is_over:
            self.is_over, self.trouble = True, trouble
            self.outgoing.take_stock()
            self._to_session.close()


@asynccontextmanager
async def open_wire(spec: UpstreamSpec) -> AsyncIterator[StdioWire]:
    """Start the process of an upstream and talk to it; raises OSError when it cannot be started."""
    child = await start_child(spec)
    wire = StdioWire(spec, child)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_to_the_end, wire.read)
            tasks.start_soon(wire.write)
            tasks.start_soon(_to_the_end, partial(child.hear, spec.name))
            try:
                yield wire
            finally:
                # From here on the reader only reads away, so that the process can finish what it says.
                wire.close()
                await child.end(is_hopeless=wire.trouble is not None)
                tasks.cancel_scope.cancel()
    finally:
        wire.close()
        await child.end()


async def _to_the_end(reading: Callable[[], Awaitable[None]]) -> None:
    """Read on whoever is cancelled, until the process's end closes the pipe: it may have to say something to exit."""
    with anyio.CancelScope(shield=True):
        await reading()


class Lines:
    """Cuts what comes into lines and reads them; `trouble` says why there is no going on."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._rest = bytearray()
        self._garbage = self._complaints = 0
        self.trouble: str | None = None

    def take(self, chunk: bytes) -> Iterator[Incoming]:
        """Give the messages that are whole now, and what is unreadable as the error that it makes."""
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            whole, self._rest = bytes(self._rest) + line, bytearray()
            if whole.strip():
                yield self._read(whole)
            if self.trouble is not None:
                return
        self._rest += rest
        if len(self._rest) > LINE_LIMIT:
            self._end(f"sent a line of more than {LINE_LIMIT // 1024 // 1024} MiB")

    def _read(self, line: bytes) -> Incoming:
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError as error:
            return self._unreadable(line, error)
        self._garbage = 0
        return SessionMessage(message)

    def _unreadable(self, line: bytes, error: ValueError) -> Incoming:
        self._garbage += 1
        self._complaints += 1
        level = logging.WARNING if self._complaints <= COMPLAINTS else logging.DEBUG
        logger.log(level, "the upstream %s sent a line that is no message: %r", self._name, line[:EXCERPT])
        if self._garbage > GARBAGE_LIMIT:
            self._end(f"sent more than {GARBAGE_LIMIT} lines in a row that are no messages")
        answered = _answered_request(line)
        if answered is None:
            return error
        problem = own_error(Trouble.ANSWER_INVALID, "its answer is no message of JSON-RPC")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=answered, error=problem))

    def _end(self, trouble: str) -> None:
        self.trouble = trouble
        self._rest.clear()
        logger.warning("the upstream %s %s", self._name, trouble)


def _is_wanted(line: Incoming) -> bool:
    """Tell whether anybody here listens to it: a flood of other notifications must not keep the library busy."""
    if not isinstance(line, SessionMessage) or not isinstance(line.message, JSONRPCNotification):
        return isinstance(line, SessionMessage)
    if line.message.method != "notifications/progress":
        return line.message.method in HEARD
    try:
        ProgressNotificationParams.model_validate(line.message.params, by_name=False)
    except ValidationError:
        return False
    return True


def _answered_request(line: bytes) -> RequestId | None:
    """Return which request a line that is no message means to answer, if it says so."""
    try:
        said: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or "method" in said:
        return None
    number = said.get("id")
    return number if isinstance(number, (int, str)) and not isinstance(number, bool) else None
