"""One session with an upstream: the handshake of whichever revision it speaks, then requests and answers without loss.

The library's session makes the handshake and keeps the wire; requests go past its models, which would drop what they do
not know. Each way for a request to end is an exception that says whether anything was sent (D109).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
from mcp.client.session import ClientSession, IncomingMessage, MessageHandlerFnT
from mcp.shared.dispatcher import CallOptions, ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import CONNECTION_CLOSED, INVALID_REQUEST, PARSE_ERROR, Implementation, ToolListChangedNotification
from mcp_types import methods as protocol
from pydantic import ValidationError

from gateway.core.upstream_errors import (
    UpstreamAnswerInvalid,
    UpstreamAnswerLost,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnavailable,
    error_of,
)
from gateway.core.upstream_specs import UpstreamSpec
from gateway.mcp import http_transport
from gateway.mcp.envelope import enveloped
from gateway.mcp.stdio_transport import INVALID_ANSWER, open_wire

CLIENT = {"name": "reversi-gateway", "version": "0.1.0"}
HANDSHAKE_S = 20.0
END_S = 1.0
# Over HTTP the library gives these numbers also to answers that it could not read, so they prove no refusal there.
AMBIGUOUS_OVER_HTTP = frozenset({PARSE_ERROR, INVALID_REQUEST})

OnToolsChanged = Callable[[], None]


class _Dispatcher(JSONRPCDispatcher):
    """The library's, which also tells when the wire has ended."""

    def __init__(self, *streams: Any) -> None:
        super().__init__(*streams)
        self.ended = anyio.Event()

    async def run(self, *args: Any, **kwargs: Any) -> None:
        try:
            await super().run(*args, **kwargs)
        finally:
            self.ended.set()


@dataclass(slots=True)
class Session:
    """An open session; it lives until `ended` is set."""

    spec: UpstreamSpec
    version: str
    _dispatcher: _Dispatcher
    _describe_end: Callable[[], str]

    @property
    def ended(self) -> anyio.Event:
        """Set when nothing more can come."""
        return self._dispatcher.ended

    def describe_end(self) -> str:
        """Say how the session ended."""
        return self._describe_end()

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        timeout_ms: int,
        on_progress: ProgressFnT | None = None,
    ) -> dict[str, Any]:
        """Send a request and return its result as it was sent.

        Raises what `gateway.core.upstream_errors` has.
        """
        if self.ended.is_set():
            raise UpstreamUnavailable(self.spec.name, self.describe_end())
        sent, options = enveloped(method, params, version=self.version, client=CLIENT)
        if on_progress is not None:
            options["on_progress"] = on_progress
        answer = await self._answer(method, sent, options, timeout_ms)
        try:
            protocol.validate_server_result(method, self.version, answer)
        except (ValidationError, KeyError) as error:
            raise UpstreamAnswerInvalid(self.spec.name, f"its result is none of {method}") from error
        return answer

    async def _answer(
        self, method: str, params: Mapping[str, Any], options: CallOptions, timeout_ms: int
    ) -> dict[str, Any]:
        try:
            with anyio.fail_after(timeout_ms / 1000):
                return await self._dispatcher.send_raw_request(method, params, options)
        except TimeoutError as error:
            raise UpstreamTimeout(self.spec.name, timeout_ms) from error
        except MCPError as error:
            if error.error.code == CONNECTION_CLOSED:
                await self._see_the_end()
            raise self._meaning(error) from error

    async def _see_the_end(self) -> None:
        """Let the wire end, so that what is said of it is what happened."""
        with anyio.move_on_after(END_S):
            await self.ended.wait()

    def _meaning(self, error: MCPError) -> Exception:
        number, said, name = error.error.code, error.error.message, self.spec.name
        if number == http_transport.NOT_SENT:
            return UpstreamUnavailable(name, f"cannot be reached: {said}")
        if number in (http_transport.REFUSED, http_transport.GONE):
            return UpstreamRefused(name, number, said)
        if number == http_transport.ANSWER_LOST:
            return UpstreamAnswerLost(name, f"ended the connection ({said})")
        if number == CONNECTION_CLOSED:
            return UpstreamAnswerLost(name, self.describe_end() if self.ended.is_set() else said)
        if number == INVALID_ANSWER or (self.spec.url is not None and number in AMBIGUOUS_OVER_HTTP):
            return UpstreamAnswerInvalid(name, said)
        return error_of(name, number, said, error.error.data)


@asynccontextmanager
async def open_session(
    spec: UpstreamSpec, *, on_tools_changed: OnToolsChanged, handshake_s: float = HANDSHAKE_S
) -> AsyncIterator[Session]:
    """Connect to the upstream and agree on a revision; raises UpstreamUnavailable when that cannot be done."""
    trouble: UpstreamUnavailable | None = None
    try:
        async with _open_streams(spec) as (streams, describe_end):
            dispatcher = _Dispatcher(*streams)
            hear = _listener(on_tools_changed)
            client = ClientSession(
                dispatcher=dispatcher, message_handler=hear, client_info=Implementation.model_validate(CLIENT)
            )
            async with client:
                trouble = await _handshake(spec, client, describe_end, handshake_s)
                if trouble is None:
                    yield Session(spec, client.protocol_version or "", dispatcher, describe_end)
    except OSError as error:
        trouble = UpstreamUnavailable(spec.name, f"cannot be started ({spec.place}): {error.strerror or error}")
    if trouble is not None:
        raise trouble


def _listener(on_tools_changed: OnToolsChanged) -> MessageHandlerFnT:
    async def hear(message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            on_tools_changed()

    return hear


async def _handshake(
    spec: UpstreamSpec, client: ClientSession, describe_end: Callable[[], str], limit_s: float
) -> UpstreamUnavailable | None:
    """Agree on a revision, or return why not; an exception would come out of the session's task group as a group."""
    try:
        with anyio.fail_after(limit_s):
            await _negotiate(client)
    except TimeoutError:
        return UpstreamUnavailable(spec.name, f"did not answer the handshake within {limit_s:g} s")
    except MCPError as error:
        why = describe_end() if error.error.code == CONNECTION_CLOSED else f"refused the handshake: {error}"
        return UpstreamUnavailable(spec.name, why)
    except (ValidationError, RuntimeError) as error:
        return UpstreamUnavailable(spec.name, f"answered the handshake as no server of this protocol: {error}")
    return None


async def _negotiate(client: ClientSession) -> None:
    try:
        await client.discover()
    except (MCPError, ValidationError, RuntimeError):
        # Servers of before 2026 know no discovery, and not all say so in the same words.
        await client.initialize()


Streams = tuple[tuple[Any, Any], Callable[[], str]]


@asynccontextmanager
async def _open_streams(spec: UpstreamSpec) -> AsyncIterator[Streams]:
    if spec.url is None:
        async with open_wire(spec) as wire:
            yield (wire.incoming, wire.outgoing), wire.describe_end
        return
    async with http_transport.open_http_streams(spec) as streams:
        yield streams, lambda: "ended the connection"
