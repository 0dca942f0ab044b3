"""A server in this process behind the official client, with everything that passes between them kept."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import anyio
from mcp.server import Server
from mcp.shared._context_streams import create_context_streams
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse

# How the client opens: the handshake of 2025-11-25, and the exchange without one of 2026-07-28.
ERAS = {"2025": "legacy", "2026": "2026-07-28"}


class Streams:
    """A pair of streams as the client takes a transport."""

    def __init__(self, read: Any, write: Any) -> None:
        self._streams = read, write

    async def __aenter__(self) -> Any:
        return self._streams

    async def __aexit__(self, *_: object) -> None:
        for stream in self._streams:
            await stream.aclose()


@asynccontextmanager
async def recorded(server: Server[Any]) -> AsyncIterator[tuple[Streams, list[dict[str, Any]]]]:
    """Serve one client over streams; the list gets each result as it would stand on the wire."""
    results: list[dict[str, Any]] = []
    to_server, from_client = create_context_streams[SessionMessage | Exception](1)
    to_client, from_server = create_context_streams[SessionMessage | Exception](1)
    relay, relayed = create_context_streams[SessionMessage | Exception](1)

    async def pass_on() -> None:
        async for item in relayed:
            if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse):
                results.append(dict(item.message.result))
            await to_client.send(item)

    async def keep() -> None:
        # The client may have left while the server had something to say.
        async with to_client, relayed:
            with suppress(anyio.BrokenResourceError):
                await pass_on()

    streams = (to_server, from_client, to_client, from_server, relay, relayed)
    async with AsyncExitStack() as closing, anyio.create_task_group() as tasks:
        for stream in streams:
            await closing.enter_async_context(stream)
        tasks.start_soon(keep)
        tasks.start_soon(server.run, from_client, relay, server.create_initialization_options())
        yield Streams(from_server, to_server), results
