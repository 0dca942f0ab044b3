"""Opening a session with an upstream: the wire, then the handshake of whichever revision it speaks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.client.session import ClientSession, IncomingMessage, MessageHandlerFnT
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, Implementation, ToolListChangedNotification
from pydantic import ValidationError

from gateway.core.upstream_errors import UpstreamUnavailable
from gateway.core.upstream_specs import UpstreamSpec
from gateway.mcp.http_transport import HttpWire, open_http_streams
from gateway.mcp.own_errors import Trouble, trouble_of
from gateway.mcp.session import CLIENT, Dispatcher, Session, Wire
from gateway.mcp.stdio_transport import open_wire

HANDSHAKE_S = 20.0

OnToolsChanged = Callable[[], None]
Way = Callable[[], Awaitable[object]]


class DiscoveryFatal(UpstreamUnavailable):
    """The upstream ended when it was asked in the way of 2026: next time it is asked in the older way first."""


@asynccontextmanager
async def open_session(
    spec: UpstreamSpec,
    *,
    on_tools_changed: OnToolsChanged,
    is_old: bool = False,
    handshake_s: float = HANDSHAKE_S,
) -> AsyncIterator[Session]:
    """Connect to the upstream and agree on a revision; raises UpstreamUnavailable when that cannot be done."""
    trouble: UpstreamUnavailable | None = None
    try:
        async with _open_streams(spec) as (streams, wire):
            dispatcher = Dispatcher(*streams)
            hear, info = _listener(on_tools_changed), Implementation.model_validate(CLIENT)
            client = ClientSession(dispatcher=dispatcher, message_handler=hear, client_info=info)
            async with client:
                # Raised behind the session: out of its task group it would come as a group.
                trouble = await _handshake(spec, client, wire, is_old=is_old, limit_s=handshake_s)
                if trouble is None:
                    session = Session(spec, client.protocol_version or "", client, dispatcher, wire)
                    async with _listening(session, on_tools_changed):
                        yield session
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        trouble = UpstreamUnavailable(spec.name, f"cannot be started ({spec.place}): {why or error}")
    if trouble is not None:
        raise trouble


def _listener(on_tools_changed: OnToolsChanged) -> MessageHandlerFnT:
    async def hear(message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            on_tools_changed()

    return hear


@asynccontextmanager
async def _listening(session: Session, on_tools_changed: OnToolsChanged) -> AsyncIterator[None]:
    capabilities = session.client.server_capabilities
    is_telling = capabilities is not None and capabilities.tools is not None and capabilities.tools.list_changed
    async with anyio.create_task_group() as tasks:
        if session.is_modern and is_telling:
            tasks.start_soon(session.listen, on_tools_changed)
        try:
            yield
        finally:
            session.close("was let go")
            tasks.cancel_scope.cancel()


async def _handshake(
    spec: UpstreamSpec, client: ClientSession, wire: Wire, *, is_old: bool, limit_s: float
) -> UpstreamUnavailable | None:
    """Agree on a revision, or return why not."""
    ask, greet = client.discover, client.initialize
    # Once more in the end: a server that was slow to start has taken the first question, and now refuses the greeting.
    ways: Sequence[Way] = (greet, ask) if is_old else (ask, greet, ask)
    try:
        with anyio.fail_after(limit_s):
            await _first_that_works(ways, wire)
    except TimeoutError:
        return UpstreamUnavailable(spec.name, f"did not answer the handshake within {limit_s:g} s")
    except MCPError as error:
        kind = UpstreamUnavailable if is_old or not wire.is_over else DiscoveryFatal
        return kind(spec.name, _why(error, wire))
    except (ValidationError, RuntimeError) as error:
        return UpstreamUnavailable(spec.name, f"answered the handshake as no server of this protocol: {error}")
    return None


async def _first_that_works(ways: Sequence[Way], wire: Wire) -> None:
    """Try them in turn: servers of before 2026 know no discovery, and not all say so in the same words."""
    refusals: list[Exception] = []
    for way in ways:
        try:
            await way()
            return
        except (MCPError, ValidationError, RuntimeError) as refusal:
            refusals.append(refusal)
            if wire.is_over or _is_unsent(refusal):
                raise
    # What is said to the greeting says most.
    raise refusals[-2]


def _is_unsent(refusal: Exception) -> bool:
    return isinstance(refusal, MCPError) and trouble_of(refusal) is Trouble.NOT_SENT


def _why(error: MCPError, wire: Wire) -> str:
    if _is_unsent(error):
        return f"cannot be reached: {error}"
    is_end = wire.is_over or error.error.code == CONNECTION_CLOSED
    return wire.describe_end() if is_end else f"refused the handshake: {error}"


@asynccontextmanager
async def _open_streams(spec: UpstreamSpec) -> AsyncIterator[tuple[tuple[Any, Any], Wire]]:
    if spec.url is None:
        async with open_wire(spec) as wire:
            yield (wire.incoming, wire.outgoing), wire
        return
    async with open_http_streams(spec) as streams:
        yield streams, HttpWire()
