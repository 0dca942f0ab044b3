"""The wire to an upstream that is a URL: the library's transport over a client that tells what was sent.

The library ends the whole session when a request cannot be delivered, and calls every refusal by status an internal
error. So what the network or the status says is put into the form of a JSON-RPC error, under numbers of our own.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from gateway.core.upstream_specs import UpstreamSpec

CONNECT_S = 10.0
EVENT_LIMIT = 16 * 1024 * 1024
NOT_SENT = -32018
ANSWER_LOST = -32017
REFUSED = -32016
GONE = -32015
# Statuses under which a request was looked at and not carried out; 404 says so of the whole session.
REFUSING = frozenset({400, 401, 403, 405, 406, 410, 411, 413, 414, 415, 421, 422, 426, 429, 431})


class _Telling(httpx2.AsyncBaseTransport):
    """Answers for the network what the network did not."""

    def __init__(self) -> None:
        self._wire = httpx2.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method != "POST":
            return await self._wire.handle_async_request(request)
        try:
            response = await self._wire.handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            return _error(NOT_SENT, str(error) or "cannot be reached")
        except httpx2.TransportError as error:
            return _error(ANSWER_LOST, str(error) or type(error).__name__)
        return await _judged(response)

    async def aclose(self) -> None:
        await self._wire.aclose()


async def _judged(response: httpx2.Response) -> httpx2.Response:
    status = response.status_code
    if status != 404 and status not in REFUSING:
        return response
    body = await response.aread()
    await response.aclose()
    if _is_error_message(body):
        return httpx2.Response(status, headers={"content-type": "application/json"}, content=body)
    return _error(GONE if status == 404 else REFUSED, f"HTTP {status} {response.reason_phrase}".strip())


def _is_error_message(body: bytes) -> bool:
    try:
        said: Any = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(said, dict) and isinstance(said.get("error"), dict) and "code" in said["error"]


def _error(number: int, message: str) -> httpx2.Response:
    return httpx2.Response(503, json={"jsonrpc": "2.0", "id": None, "error": {"code": number, "message": message}})


@asynccontextmanager
async def open_http_streams(spec: UpstreamSpec) -> AsyncIterator[tuple[Any, Any]]:
    """Give the streams of messages to and from the upstream's URL."""
    assert spec.url is not None
    limits = httpx2.Timeout(None, connect=CONNECT_S)
    async with (
        httpx2.AsyncClient(headers=dict(spec.headers), timeout=limits, transport=_Telling()) as http,
        streamable_http_client(spec.url, http_client=http, max_sse_event_size=EVENT_LIMIT) as streams,
    ):
        yield streams
