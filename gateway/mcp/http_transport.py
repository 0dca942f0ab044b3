"""The wire to an upstream that is a URL: the library's transport over a client that tells what was sent.

The library ends the whole session when a request cannot be delivered or an answer breaks off, calls every refusal by
status an internal error, and what it cannot read a refusal. So what the network or the status says is put into the form
of an error of our own before the library sees it.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.dispatcher import coerce_request_id
from mcp_types import CONNECTION_CLOSED, PARSE_ERROR, JSONRPCError, RequestId

from gateway.core.upstream_errors import REFUSALS
from gateway.core.upstream_specs import UpstreamSpec
from gateway.mcp.own_errors import Trouble, own_error

CONNECT_S = 10.0
# For what nobody waits for: notifications, and the end of a session.
SHORT_S = 3.0
ANSWER_LIMIT = 16 * 1024 * 1024
JSON = "application/json"
EVENTS = "text/event-stream"
# Statuses under which a request was looked at and not carried out; 404 says so of the whole session.
BAD_REQUEST, GONE = 400, 404
SESSION_HEADER = "mcp-session-id"
# What a server says of the request itself, whatever session it came in.
NOT_OF_SESSION = frozenset({-32700, -32601, -32602})
_OF_SESSION = re.compile(r"session|not initialized", re.IGNORECASE)
REFUSING = frozenset({301, 302, 303, 400, 401, 403, 405, 406, 410, 411, 413, 414, 415, 421, 422, 426, 429, 431})
FOLLOWED = frozenset({307, 308})
UNDELIVERED = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)

logger = logging.getLogger(__name__)


class _Unreadable(Exception):
    """An answer that cannot be what was asked for."""


class _Telling(httpx2.AsyncBaseTransport):
    """Answers for the network what the network did not."""

    def __init__(self) -> None:
        self._wire = httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "GET":
            return await self._wire.handle_async_request(request)
        asked = _request_of(request)
        if asked is None:
            request.extensions["timeout"] = httpx2.Timeout(SHORT_S).as_dict()
        try:
            return await self._answered(request, asked)
        except UNDELIVERED as error:
            return _error(asked, Trouble.NOT_SENT, str(error) or type(error).__name__)
        except httpx2.TransportError as error:
            return _error(asked, Trouble.ANSWER_LOST, f"broke off the connection: {str(error) or type(error).__name__}")

    async def _answered(self, request: httpx2.Request, asked: RequestId | None) -> httpx2.Response:
        response = await self._wire.handle_async_request(request)
        if asked is None or _is_passed_on(response):
            return response
        try:
            body = await _whole(response)
        except (_Unreadable, httpx2.DecodingError) as error:
            return _error(asked, Trouble.ANSWER_INVALID, str(error))
        finally:
            await response.aclose()
        return _judged(response, body, asked, is_in_session=SESSION_HEADER in request.headers)

    async def aclose(self) -> None:
        await self._wire.aclose()


def _is_passed_on(response: httpx2.Response) -> bool:
    """Tell whether the library deals with it well: events, and redirects within the origin."""
    is_events = response.is_success and _kind(response) == EVENTS
    return is_events or response.status_code in FOLLOWED


def _kind(response: httpx2.Response) -> str:
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()


async def _whole(response: httpx2.Response) -> bytes:
    """Read the body, up to the limit; whatever breaks off raises what the network raises."""
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > ANSWER_LIMIT:
            raise _Unreadable(f"its answer has more than {ANSWER_LIMIT // 1024 // 1024} MiB")
    return bytes(body)


def _judged(response: httpx2.Response, body: bytes, asked: RequestId, *, is_in_session: bool) -> httpx2.Response:
    status, said = response.status_code, _message(response, body)
    refusal = _refusal(status, said, is_in_session=is_in_session)
    if refusal is not None:
        return _error(asked, *refusal)
    if said is not None and (response.is_success or "error" in said):
        if said.get("id") is None:
            # The server refused what it could not read so far; over HTTP it is clear what it speaks of.
            body = json.dumps({**said, "id": asked}).encode()
        elif coerce_request_id(said["id"]) != asked:
            return _error(asked, Trouble.ANSWER_INVALID, "it answered another request")
        # The session's id is in the headers; those of the body are no longer true.
        kept = {name: value for name, value in response.headers.items() if name.lower().startswith("mcp-")}
        return httpx2.Response(status, headers={**kept, "content-type": JSON}, content=body)
    return _error(asked, _trouble(status), f"HTTP {status} {response.reason_phrase}".strip())


def _refusal(status: int, said: Mapping[str, Any] | None, *, is_in_session: bool) -> tuple[Trouble, str] | None:
    """Return what a refusal by status means whose error, by its number, could mean anything.

    Servers that were started again know nothing of the session, and say so by 404 or, in many words, by 400.
    """
    error: Any = None if said is None else said.get("error")
    if not isinstance(error, dict) or (status != GONE and status not in REFUSING):
        return None
    number, message = error.get("code"), str(error.get("message") or f"HTTP {status}")
    is_of_session = status == GONE or (status == BAD_REQUEST and _OF_SESSION.search(message) is not None)
    if is_in_session and is_of_session and number not in NOT_OF_SESSION:
        return Trouble.SESSION_GONE, message
    return None if number in REFUSALS else (Trouble.REFUSED, message)


def _trouble(status: int) -> Trouble:
    """Return what a status means that came without an answer of JSON-RPC; a 5xx on a write proves nothing (D39)."""
    if status == GONE:
        return Trouble.SESSION_GONE
    if status in REFUSING:
        return Trouble.REFUSED
    return Trouble.ANSWER_INVALID if httpx2.codes.is_success(status) else Trouble.BROKE


def _message(response: httpx2.Response, body: bytes) -> dict[str, Any] | None:
    """Return the JSON-RPC answer in the body, if it is one."""
    if _kind(response) != JSON:
        return None
    try:
        said: Any = json.loads(body)
    except (ValueError, RecursionError):
        return None
    is_answer = isinstance(said, dict) and ("result" in said or isinstance(said.get("error"), dict))
    return said if is_answer and isinstance(said.get("id"), int | str | None) else None


def _request_of(request: httpx2.Request) -> RequestId | None:
    """Return the id of the JSON-RPC request that is sent, None for a notification, an answer or no message."""
    try:
        said: Any = json.loads(request.content)
    except ValueError:
        return None
    return said.get("id") if isinstance(said, dict) and "method" in said else None


def _error(asked: RequestId | None, trouble: Trouble, message: str) -> httpx2.Response:
    if asked is None:
        logger.debug("a message was not delivered: %s", message)
        return httpx2.Response(204)
    said = JSONRPCError(jsonrpc="2.0", id=asked, error=own_error(trouble, message))
    return httpx2.Response(200, headers={"content-type": JSON}, content=said.model_dump_json())


class HttpWire:
    """What is known of a wire that has no end of its own: each request is one."""

    is_over = False
    made_by_library: Mapping[int, Trouble] = MappingProxyType(
        {CONNECTION_CLOSED: Trouble.ANSWER_LOST, PARSE_ERROR: Trouble.ANSWER_INVALID}
    )

    def describe_end(self) -> str:
        """Say how the wire ended."""
        return "ended the connection"

    def settle(self, call: RequestId) -> bool:
        """Tell whether nothing of a request was sent: unknown, once the library has it."""
        return False


@asynccontextmanager
async def open_http_streams(spec: UpstreamSpec) -> AsyncIterator[tuple[Any, Any]]:
    """Give the streams of messages to and from the upstream's URL."""
    assert spec.url is not None
    limits = httpx2.Timeout(None, connect=CONNECT_S)
    async with (
        httpx2.AsyncClient(headers=dict(spec.headers), timeout=limits, transport=_Telling()) as http,
        streamable_http_client(spec.url, http_client=http, max_sse_event_size=ANSWER_LIMIT) as streams,
    ):
        yield streams
