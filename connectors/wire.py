"""JSON-RPC lines over standard input and output, as the streams that the MCP library reads and writes.

Only the protocol reaches standard output: while a session is on, whatever else prints goes to standard error. The end
of the input, SIGTERM and an interrupt mean the same: nothing more is taken in, what was asked is answered, and the
session ends. A second signal ends the process at once.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import anyio
import anyio.lowlevel
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from reversi_sdk.errors import InvalidInput

LINE_LIMIT_BYTES: Final = 32 * 1024 * 1024
_CHUNK_BYTES: Final = 64 * 1024
_ENDINGS: Final = (signal.SIGTERM, signal.SIGINT)

Received: TypeAlias = SessionMessage | Exception
Streams: TypeAlias = tuple[MemoryObjectReceiveStream[Received], MemoryObjectSendStream[SessionMessage]]


class LineTooLong(InvalidInput):
    """The peer sent a line longer than any call needs; there is no going on behind it."""

    code = "line_too_long"


@asynccontextmanager
async def stdio_streams() -> AsyncIterator[Streams]:
    """Open the session's streams over standard input and output; raises `LineTooLong` when they end for that.

    The first stream ends only when everything that was asked is answered.
    """
    wire = _Wire(*_claim_standard_streams())
    requests, taken = anyio.create_memory_object_stream[Received](0)
    answers, given = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as group:
        group.start_soon(wire.end_on_signal)
        group.start_soon(wire.take_in, requests)
        group.start_soon(wire.give_out, given)
        yield taken, answers
        group.cancel_scope.cancel()
    if wire.flaw is not None:
        raise wire.flaw


def _claim_standard_streams() -> tuple[int, int]:
    """Return private copies of standard input and output, which from now on lead elsewhere."""
    source, sink = (fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 3) for number in (0, 1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return source, sink


@dataclass(slots=True)
class _Wire:
    """What is read and written, and which requests wait for their answers."""

    source: int
    sink: int
    flaw: LineTooLong | None = None
    is_peer_gone: bool = False
    waiting: set[int | str] = field(default_factory=set)
    answered: anyio.Event = field(default_factory=anyio.Event)
    ending: anyio.Event = field(default_factory=anyio.Event)

    async def end_on_signal(self) -> None:
        """Take nothing more in after a signal."""
        with anyio.open_signal_receiver(*_ENDINGS) as signals:
            await anext(signals)
        for number in _ENDINGS:
            signal.signal(number, signal.SIG_DFL)
        self.ending.set()

    async def take_in(self, requests: MemoryObjectSendStream[Received]) -> None:
        """Hand on what is read until the end, then wait for the answers."""
        async with requests:
            async with anyio.create_task_group() as group:
                group.start_soon(self._stop_at_the_end, group.cancel_scope)
                await self._read_into(requests)
                self.ending.set()
            while self.waiting:
                await self.answered.wait()

    async def _stop_at_the_end(self, scope: anyio.CancelScope) -> None:
        await self.ending.wait()
        scope.cancel()

    async def _read_into(self, requests: MemoryObjectSendStream[Received]) -> None:
        try:
            async for line in _lines(self.source):
                received = _parsed(line)
                # Whatever is noted as asked must arrive: its answer is waited for.
                with anyio.CancelScope(shield=True):
                    self._note(received)
                    await requests.send(received)
        except LineTooLong as error:
            self.flaw = error

    def _note(self, received: Received) -> None:
        """Keep in mind what will be answered; a cancelled request is not."""
        message = received.message if isinstance(received, SessionMessage) else None
        if isinstance(message, JSONRPCRequest):
            self.waiting.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self.waiting.discard((message.params or {}).get("requestId", ""))

    async def give_out(self, answers: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Write every answer; once nobody reads them any more they are dropped."""
        async with answers:
            async for answer in answers:
                if not self.is_peer_gone:
                    await self._write(answer.message)
                self._note_answered(answer.message)

    async def _write(self, message: JSONRPCMessage) -> None:
        try:
            await _write_all(self.sink, _as_line(message))
        except (BrokenPipeError, ConnectionResetError):
            self.is_peer_gone = True
            self.ending.set()

    def _note_answered(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self.waiting.discard(message.id)
        self.answered.set()
        self.answered = anyio.Event()


async def _lines(descriptor: int) -> AsyncIterator[bytes]:
    unfinished = bytearray()
    while chunk := await _read(descriptor):
        *ended, rest = chunk.split(b"\n")
        for line in ended:
            yield bytes(unfinished + line)
            unfinished.clear()
        unfinished += rest
        if len(unfinished) > LINE_LIMIT_BYTES:
            raise LineTooLong(f"a line on standard input is longer than {LINE_LIMIT_BYTES} bytes")
    yield bytes(unfinished)


def _parsed(line: bytes) -> Received:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValidationError as error:
        return error


def _as_line(message: JSONRPCMessage) -> bytes:
    # In ASCII, so that a text with half a character in it cannot keep an answer back.
    return json.dumps(message.model_dump(by_alias=True, exclude_unset=True)).encode() + b"\n"


async def _read(descriptor: int) -> bytes:
    await _ready(anyio.wait_readable, descriptor)
    return os.read(descriptor, _CHUNK_BYTES)


async def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        await _ready(anyio.wait_writable, descriptor)
        # As much as a pipe takes without making the whole process wait for its reader.
        rest = rest[os.write(descriptor, rest[: select.PIPE_BUF]) :]


async def _ready(wait: Callable[[int], Awaitable[None]], descriptor: int) -> None:
    try:
        await wait(descriptor)
    except PermissionError:
        # A regular file or the null device cannot be waited for: it is always ready.
        await anyio.lowlevel.checkpoint()
