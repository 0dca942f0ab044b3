"""Serve clients over streamable HTTP: `/mcp` for agents and `/mcp/operator` for operators, both eras from one app.

Who calls is told by an API key in `Authorization: Bearer …`, on every request; a session is used with the key that
opened it and no other. The `Host` of a request, and its `Origin` where a browser sends one, must be a name that this
deployment answers to (`REVERSI_ALLOWED_HOSTS`), so that no page elsewhere can be pointed here. `/healthz` needs
neither.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from enum import StrEnum
from http import HTTPStatus
from urllib.parse import urlsplit

import anyio
import uvicorn
from django.db import Error as DatabaseError
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from approvals.core.errors import NotAuthenticated
from approvals.core.people import Act, Caller, may
from approvals.operations.keys import authenticate
from gateway.core.run_names import named_run
from gateway.mcp.server import Gateway
from gateway.mcp.upstream import State
from gateway.mcp.visits import Request, Visit, VisitOf, client_of, meta_of, reporter_of
from gateway.operations.runs import RunTerms
from ledger.core.errors import BadRunId
from reversi_sdk.errors import Unavailable
from reversi_site.kit.api.authentication import CHALLENGE, SCHEME
from reversi_site.kit.api.problems import CONTENT_TYPE, problem_body
from reversi_site.kit.clock import Clock, SystemClock

RUN_HEADER = "reversi-run-id"
BODY_LIMIT = 8 * 1024 * 1024
# How long requests under way may take to their end when the gateway ends.
GRACE_S = 3
_CALLER = "reversi.caller"

Names = Callable[[str], bool]
"""Whether this deployment answers to a host's name."""

logger = logging.getLogger(__name__)


class Door(StrEnum):
    """Where clients come in."""

    AGENT = "/mcp"
    OPERATOR = "/mcp/operator"


# Whoever may do this may come in by the door.
ENTERED_BY: Mapping[Door, Act] = {Door.AGENT: Act.CALL, Door.OPERATOR: Act.ROLL_BACK}


def http_app(gateway: Gateway, *, answers_to: Names, clock: Clock | None = None) -> Starlette:
    """Return the app; its lifespan must be run."""
    managers = {door: _manager(gateway, door) for door in Door}
    clock = clock or SystemClock()

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as running:
            for manager in managers.values():
                await running.enter_async_context(manager.run())
            yield

    doors = [
        Route(door, endpoint=_Guard(manager.handle_request, door, gateway, answers_to=answers_to, clock=clock))
        for door, manager in managers.items()
    ]

    async def health(_: HttpRequest) -> Response:
        return _health(gateway)

    health_route = Route("/healthz", endpoint=health, methods=["GET"])
    return Starlette(routes=[*doors, health_route], lifespan=lifespan)


async def serve_http(
    app: Starlette, *, listening: socket.socket, stopping: anyio.Event, grace_s: int = GRACE_S
) -> None:
    """Serve the app on the socket until told to stop; requests under way get some seconds."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        lifespan="on",
        timeout_graceful_shutdown=grace_s,
    )
    server = _Server(config)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_stop_when, stopping, server)
        await server.serve(sockets=[listening])
        tasks.cancel_scope.cancel()


async def _stop_when(event: anyio.Event, server: uvicorn.Server) -> None:
    await event.wait()
    server.should_exit = True


class _Server(uvicorn.Server):
    """Leaves signals to whoever runs it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _manager(gateway: Gateway, door: Door) -> StreamableHTTPSessionManager:
    # Host and Origin are judged by the guard, which knows this deployment's names.
    return StreamableHTTPSessionManager(gateway.server(_visits(door)), max_request_body_size=BODY_LIMIT)


def _visits(door: Door) -> VisitOf:
    def visit_of(request: Request) -> Visit:
        http = request.request
        assert http is not None
        caller: Caller = http.scope[_CALLER]
        client = client_of(request)
        return Visit(
            caller=caller,
            terms=RunTerms(client=client),
            connection=_connection(http, caller, client),
            is_operator=door is Door.OPERATOR,
            outside=http.headers.get(RUN_HEADER),
            meta=meta_of(request),
            report=reporter_of(request),
        )

    return visit_of


def _connection(http: HttpRequest, caller: Caller, client: str) -> Hashable:
    # With the key: without a handshake nobody has looked whose the named session is.
    session = http.headers.get(MCP_SESSION_ID_HEADER)
    place = ("client", client) if session is None else ("session", session)
    return (caller.username, caller.key_prefix, *place)


def _health(gateway: Gateway) -> Response:
    ready = sum(upstream.state is State.READY for upstream in gateway.upstreams.servers)
    counts = {"ready": ready, "down": len(gateway.upstreams.servers) - ready}
    return JSONResponse({"status": "ok", "upstreams": counts})


class _Guard:
    """Lets requests in whose host, key and role are right; an app of its own, so that streams pass untouched."""

    def __init__(self, app: ASGIApp, door: Door, gateway: Gateway, *, answers_to: Names, clock: Clock) -> None:
        self._app, self._door, self._gateway = app, door, gateway
        self._answers_to, self._clock = answers_to, clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        answer = _misled(headers, self._answers_to)
        if answer is None:
            found = await self._caller(headers)
            if isinstance(found, Caller):
                await self._app({**scope, _CALLER: found, "user": _session_owner(found)}, receive, send)
                return
            answer = found
        await answer(scope, receive, send)

    async def _caller(self, headers: Headers) -> Caller | Response:
        """Return who calls, or the refusal."""
        token = _bearer(headers)
        if token is None:
            return _not_authenticated()
        try:
            caller = await self._gateway.journal.run(authenticate, token=token, now=self._clock.now())
        except NotAuthenticated:
            return _not_authenticated()
        except (Unavailable, DatabaseError):
            logger.exception("a key cannot be looked up")
            return _problem(HTTPStatus.SERVICE_UNAVAILABLE, Unavailable.code, "the store cannot be used at the moment")
        if not may(caller, ENTERED_BY[self._door]):
            return _problem(HTTPStatus.FORBIDDEN, "permission_denied", _WHO[self._door])
        return _misnamed(headers) or caller


_WHO: Mapping[Door, str] = {
    Door.AGENT: "this address is for keys of the role agent or admin; operators use /mcp/operator",
    Door.OPERATOR: "this address is for keys of the role operator or admin; agents use /mcp",
}


def _misled(headers: Headers, answers_to: Names) -> Response | None:
    """Return the refusal of a request that was meant for somebody else, or made by somebody else's page."""
    if not answers_to(_name(f"//{headers.get('host', '')}")):
        hint = "REVERSI_ALLOWED_HOSTS lists the names of this deployment"
        return _problem(HTTPStatus.MISDIRECTED_REQUEST, "host_unknown", f"nobody is called that here; {hint}")
    origin = headers.get("origin")
    if origin is not None and not answers_to(_name(origin)):
        return _problem(HTTPStatus.FORBIDDEN, "origin_unknown", "pages of that origin may not call this gateway")
    return None


def _misnamed(headers: Headers) -> Response | None:
    """Return the refusal of a request whose header names what can be no run."""
    try:
        named_run(outside=headers.get(RUN_HEADER), meta=None, handle=None)
    except BadRunId as error:
        return _problem(HTTPStatus.BAD_REQUEST, error.code, str(error))
    return None


def _name(address: str) -> str:
    """Return the host's name in an address, as Django's list of allowed hosts spells it; empty when it has none."""
    try:
        name = urlsplit(address).hostname or ""
    except ValueError:
        return ""
    return f"[{name}]" if ":" in name else name


def _bearer(headers: Headers) -> str | None:
    parts = headers.getlist("authorization")
    words = parts[0].split() if len(parts) == 1 else []
    if len(words) != 2 or words[0].lower() != SCHEME or not (words[1].isascii() and words[1].isprintable()):
        return None
    return words[1]


def _session_owner(caller: Caller) -> AuthenticatedUser:
    """Return whom the library lets use the session that this request opens."""
    token = AccessToken(token="", client_id=caller.key_prefix or "", scopes=[], subject=caller.username)
    return AuthenticatedUser(token)


def _not_authenticated() -> Response:
    detail = "a valid API key is required: Authorization: Bearer rk_…"
    return _problem(HTTPStatus.UNAUTHORIZED, NotAuthenticated.code, detail, {"WWW-Authenticate": CHALLENGE})


def _problem(status: HTTPStatus, code: str, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    body = problem_body(status=status, code=code, detail=detail)
    return JSONResponse(body, status_code=status, media_type=CONTENT_TYPE, headers=dict(headers or {}))
