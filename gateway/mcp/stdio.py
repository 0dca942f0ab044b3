"""Serve one client over a pair of file descriptors, as a program serves whoever started it.

Reads and writes wait in the event loop and in no thread, so that the end of the client, or a signal, ends the serving
at once. What is under way then is cancelled, which settles its step, and answered as far as the client still listens.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server import Server
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR
from mcp_types.jsonrpc import ErrorData, JSONRPCError, jsonrpc_message_adapter

from approvals.core.people import Caller
from gateway.mcp.visits import Request, Visit, VisitOf, client_of, meta_of, reporter_of
from gateway.operations.runs import RunTerms
from ledger.core.statuses import Mode

LINE_LIMIT = 32 * 1024 * 1024
READ = 64 * 1024
# What a pipe that says it can be written to takes at once, without blocking.
WRITE = 4096
LAST_WORDS_S = 1.0

logger = logging.getLogger(__name__)

Incoming = MemoryObjectSendStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]


def local_visits(
    *, caller: Caller, run_id: str | None, mode: str | None, scope: tuple[str, ...] | None, is_operator: bool
) -> VisitOf:
    """Return how a request over standard input is seen: as one of the user whose process this is.

    Without a mode calls are judged, unless a run was named: then whoever named it knows in which mode it is.
    """
    widest = mode if mode is not None or run_id is not None else Mode.ENFORCE.value

    def visit_of(request: Request) -> Visit:
        return Visit(
            caller=caller,
            terms=RunTerms(client=client_of(request), mode=widest, scope=scope),
            connection="stdio",
            is_operator=is_operator,
            outside=run_id,
            meta=meta_of(request),
            report=reporter_of(request),
        )

    return visit_of


async def serve_stdio(server: Server[Any], *, incoming: int, outgoing: int, stopping: anyio.Event) -> None:
    """Serve until the client closes its end, or until told to stop."""
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    errors = to_client.clone()
    reading, is_written = anyio.CancelScope(), anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_cancel_when, stopping, reading)
        tasks.start_soon(_write_lines, outgoing, from_server, reading, is_written)
        tasks.start_soon(_read_lines, incoming, to_server, errors, reading)
        await server.run(from_client, to_client, server.create_initialization_options())
        with anyio.move_on_after(LAST_WORDS_S):
            await is_written.wait()
        tasks.cancel_scope.cancel()


async def _cancel_when(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


async def _read_lines(incoming: int, to_server: Incoming, errors: Outgoing, reading: anyio.CancelScope) -> None:
    """Read messages until the end, or until the scope is cancelled; the server then sees the end."""
    lines = _Lines()
    with to_server, errors, reading, suppress(anyio.BrokenResourceError):
        while chunk := await _read(incoming):
            for line in lines.take(chunk):
                await _take_in(line, to_server, errors)
            if lines.is_endless:
                logger.error("the client sent a line of more than %d bytes: the session ends", LINE_LIMIT)
                return


async def _take_in(line: bytes, to_server: Incoming, errors: Outgoing) -> None:
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        error = ErrorData(code=PARSE_ERROR, message="the line is no message of JSON-RPC")
        await errors.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=_asked_by(line), error=error)))
    else:
        await to_server.send(SessionMessage(message))


def _asked_by(line: bytes) -> int | str | None:
    """Return the number of a request that could not be read, as far as it tells: somebody waits for its answer."""
    try:
        said: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    number = said.get("id") if isinstance(said, dict) else None
    return number if isinstance(number, int | str) and not isinstance(number, bool) else None


class _Lines:
    """Cuts what comes into lines."""

    def __init__(self) -> None:
        self._rest = bytearray()

    @property
    def is_endless(self) -> bool:
        return len(self._rest) > LINE_LIMIT

    def take(self, chunk: bytes) -> Iterator[bytes]:
        first, *others = chunk.split(b"\n")
        self._rest += first
        for other in others:
            line, self._rest = bytes(self._rest), bytearray(other)
            if line.strip():
                yield line


async def _write_lines(
    outgoing: int,
    from_server: MemoryObjectReceiveStream[SessionMessage],
    reading: anyio.CancelScope,
    is_written: anyio.Event,
) -> None:
    """Write what the server says; a client that has left ends the reading too."""
    try:
        with from_server:
            async for message in from_server:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await _write(outgoing, text.encode() + b"\n")
    except OSError as error:
        logger.info("the client reads no more: %s", error)
        reading.cancel()
    finally:
        is_written.set()


async def _read(descriptor: int) -> bytes:
    await _when(anyio.wait_readable, descriptor)
    try:
        return os.read(descriptor, READ)
    except OSError:
        # A terminal that was closed says so with an error.
        return b""


async def _write(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        await _when(anyio.wait_writable, descriptor)
        rest = rest[os.write(descriptor, rest[:WRITE]) :]


async def _when(ready: Callable[[int], Awaitable[None]], descriptor: int) -> None:
    try:
        await ready(descriptor)
    except PermissionError:
        # A plain file is always ready, and cannot be waited for.
        await anyio.lowlevel.checkpoint()
