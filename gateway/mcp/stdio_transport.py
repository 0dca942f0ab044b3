"""The wire to an upstream that is a process: JSON lines over its standard input and output.

The library's own reader keeps an unfinished line without bound and logs every line that it cannot read, so a broken
server could fill memory or disk. Here a line may have 16 MiB, a run of 200 unreadable lines ends the wire, and what the
process says on standard error is read away, its end kept for messages. The process and all its children end with
the wire: its input is closed, then come SIGTERM and SIGKILL.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import ErrorData, JSONRPCError, jsonrpc_message_adapter

from gateway.core.upstream_specs import UpstreamSpec

LINE_LIMIT = 16 * 1024 * 1024
GARBAGE_LIMIT = 200
LAST_WORDS = 4096
GRACE_S = 2.0
EXIT_S = 0.3
POLL_S = 0.01
# An answer that names its request but is none: told to the request, under a number that no server uses.
INVALID_ANSWER = -32019
OUR_SECRETS = ("REVERSI_", "DATABASE_URL")

logger = logging.getLogger(__name__)

Incoming = SessionMessage | Exception
_BROKEN = (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)


@dataclass(slots=True)
class Wire:
    """An open wire; `trouble` says why it ended, as far as that is known."""

    incoming: MemoryObjectReceiveStream[Incoming]
    outgoing: MemoryObjectSendStream[SessionMessage]
    process: Process
    trouble: str | None = None
    _said: bytearray = field(default_factory=bytearray)

    def hear(self, chunk: bytes) -> None:
        """Keep the end of what the process says on standard error."""
        self._said += chunk
        del self._said[:-LAST_WORDS]

    @property
    def last_line(self) -> str:
        """The last line that the process said on standard error."""
        lines = self._said.decode(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else ""

    def describe_end(self) -> str:
        """Say how the wire ended."""
        code = self.process.returncode
        ended = self.trouble or ("closed its output" if code is None else _death(code))
        return f"{ended}: {self.last_line}" if self.last_line else ended


def _death(code: int) -> str:
    return f"was killed by signal {-code}" if code < 0 else f"exited with code {code}"


def child_environment(environ: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
    """Return what an upstream's process gets: everything but our own settings and secrets, and what its entry adds."""
    kept = {name: value for name, value in environ.items() if not name.startswith(OUR_SECRETS)}
    return {**kept, **extra}


@asynccontextmanager
async def open_wire(spec: UpstreamSpec) -> AsyncIterator[Wire]:
    """Start the process of an upstream and talk to it; raises OSError when it cannot be started."""
    process = await anyio.open_process(
        list(spec.command or ()),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=child_environment(os.environ, dict(spec.env)),
        cwd=spec.cwd or Path.cwd(),
        start_new_session=True,
    )
    to_session, incoming = anyio.create_memory_object_stream[Incoming](16)
    outgoing, from_session = anyio.create_memory_object_stream[SessionMessage](16)
    wire = Wire(incoming, outgoing, process)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read_lines, wire, to_session)
            tasks.start_soon(_write_lines, wire, from_session)
            tasks.start_soon(_read_away, wire, spec.name)
            try:
                yield wire
            finally:
                with anyio.CancelScope(shield=True):
                    await _end(process)
                tasks.cancel_scope.cancel()
    finally:
        for stream in (to_session, incoming, outgoing, from_session):
            stream.close()


async def _read_lines(wire: Wire, to_session: MemoryObjectSendStream[Incoming]) -> None:
    with to_session:
        with suppress(*_BROKEN, anyio.EndOfStream):
            await _pass_on(wire, to_session)
        if wire.trouble is None:
            # How it exited belongs to what is said of it; a process that only closed its output is not waited for.
            await _has_exited(wire.process, within_s=EXIT_S)


async def _pass_on(wire: Wire, to_session: MemoryObjectSendStream[Incoming]) -> None:
    """Pass on what comes, until the wire ends or must not go on."""
    assert wire.process.stdout is not None
    lines = _Lines()
    while wire.trouble is None:
        for line in lines.take(await wire.process.stdout.receive()):
            await to_session.send(lines.read(line))
            if lines.trouble is not None:
                break
        wire.trouble = lines.trouble


class _Lines:
    """Cuts what comes into lines, and counts the unreadable ones."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._garbage = 0

    @property
    def trouble(self) -> str | None:
        if len(self._rest) > LINE_LIMIT:
            return f"sent a line of more than {LINE_LIMIT // 1024 // 1024} MiB"
        return f"sent {self._garbage} lines in a row that are no messages" if self._garbage > GARBAGE_LIMIT else None

    def take(self, chunk: bytes) -> list[bytes]:
        *lines, rest = chunk.split(b"\n")
        if not lines:
            self._rest += rest
            return []
        lines[0] = bytes(self._rest) + lines[0]
        self._rest = bytearray(rest)
        return [line for line in lines if line.strip()]

    def read(self, line: bytes) -> Incoming:
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError as error:
            return self._unreadable(line, error)
        self._garbage = 0
        return SessionMessage(message)

    def _unreadable(self, line: bytes, error: ValueError) -> Incoming:
        self._garbage += 1
        answered = _answered_request(line)
        if answered is None:
            return error
        problem = ErrorData(code=INVALID_ANSWER, message="its answer is no message of JSON-RPC")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=answered, error=problem))


def _answered_request(line: bytes) -> int | str | None:
    """Return which request a line that is no message means to answer, if it says so."""
    try:
        said: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or "method" in said:
        return None
    number = said.get("id")
    return number if isinstance(number, (int, str)) and not isinstance(number, bool) else None


async def _write_lines(wire: Wire, from_session: MemoryObjectReceiveStream[SessionMessage]) -> None:
    assert wire.process.stdin is not None
    with from_session, suppress(*_BROKEN):
        async for message in from_session:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            await wire.process.stdin.send(text.encode() + b"\n")
        return
    # It takes nothing more: whoever waits for an answer must hear that the wire has ended.
    wire.incoming.close()


async def _read_away(wire: Wire, name: str) -> None:
    errors: ByteReceiveStream | None = wire.process.stderr
    assert errors is not None
    with suppress(*_BROKEN, anyio.EndOfStream):
        while True:
            chunk = await errors.receive()
            wire.hear(chunk)
            logger.debug("upstream %s: %s", name, chunk[:LAST_WORDS].decode(errors="replace").rstrip())


async def _end(process: Process) -> None:
    """Close the process's input, and make it and its children end."""
    if process.stdin is not None:
        with suppress(*_BROKEN):
            await process.stdin.aclose()
    for number in (signal.SIGTERM, signal.SIGKILL):
        if await _has_exited(process):
            break
        _signal_group(process, number)
    else:
        await _has_exited(process)
    # What the process left behind in its group ends too.
    _signal_group(process, signal.SIGKILL)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            with suppress(*_BROKEN):
                await pipe.aclose()
    _close_transport(process)


def _close_transport(process: Process) -> None:
    # A child of the process may hold a pipe open; asyncio's transport would then outlive the event loop and complain.
    transport = getattr(getattr(process, "_process", None), "_transport", None)
    if transport is not None:
        with suppress(PermissionError):
            transport.close()


async def _has_exited(process: Process, *, within_s: float = GRACE_S) -> bool:
    # Not process.wait(): it also waits for pipes that a child of the process may hold open.
    with anyio.move_on_after(within_s):
        while process.returncode is None:
            await anyio.sleep(POLL_S)
    return process.returncode is not None


def _signal_group(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
