"""Run a gateway: read what is to be enforced, open the store, put the upstreams on record, and serve until the end."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from reversi_sdk.errors import ReversiError, Unavailable
from reversi_site.configuration import Configuration, load_configuration
from reversi_site.gateway_cli.options import GatewayOptions
from reversi_site.gateway_cli.wire import Wire, take_wire

if TYPE_CHECKING:
    import socket

    from gateway.core.upstream_specs import UpstreamSpec
    from gateway.mcp.door import LoopDoor
    from gateway.mcp.server import Gateway
    from gateway.mcp.upstreams import Upstreams
    from rollback.core.ports import Tools

RECORD_EVERY_S = 2.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Setting:
    """What a gateway works with; `tools` are the names that each upstream is known to offer."""

    options: GatewayOptions
    configuration: Configuration
    specs: Sequence[UpstreamSpec]
    tools: dict[str, frozenset[str]] = field(default_factory=dict)

    @property
    def names(self) -> Sequence[str]:
        """The upstreams whose tools agents are offered."""
        return [spec.name for spec in self.specs] or [each.name for each in self.configuration.connectors]


def serve(options: GatewayOptions) -> int:
    """Serve until the client leaves or a signal comes; raises what the files, the store and the port raise."""
    setting = _read(options)
    if options.http is None and sys.stdin.isatty():
        click.echo(
            "waiting for an MCP client on standard input: it is your client that starts this command; Ctrl-C ends it",
            err=True,
        )
    # Before anything is imported that may print, or a child is started.
    wire = take_wire() if options.http is None else None
    listening = None if options.http is None else _listen(*options.http)
    from reversi_site.store import open_store

    open_store()
    from django.conf import settings

    settings.CONFIGURATION = setting.configuration
    for name in setting.names:
        _record(setting, name)
    anyio.run(_serve, setting, wire, listening)
    return 0


def _read(options: GatewayOptions) -> _Setting:
    """Read the configuration and the manifests, as the options change them; nothing is written yet."""
    from manifests_registry.sources import read_snapshot

    configuration = _changed(load_configuration(os.environ, Path()), options)
    specs = configuration.servers if options.spec is None else (options.spec,)
    if not specs and not configuration.connectors:
        raise click.UsageError("give --upstream-cmd, --upstream-url or --connector, or a configuration with upstreams")
    if not read_snapshot(configuration.manifests).entries:
        logger.warning("there are no manifests: every call is blocked, or with --mode observe only noted")
    return _Setting(options, configuration, specs)


def _changed(configuration: Configuration, options: GatewayOptions) -> Configuration:
    added = options.connector
    kept = [each for each in configuration.connectors if added is None or each.connector != added.connector]
    return replace(
        configuration,
        manifests=options.manifests or configuration.manifests,
        connectors=tuple(kept if added is None else [*kept, added]),
    )


def _listen(host: str, port: int) -> socket.socket:
    from reversi_site.serving import address_of, listen

    listening = listen(host, port)
    click.echo(f"listening on {address_of(listening)}", err=True)
    return listening


def _record(setting: _Setting, name: str) -> None:
    """Put an upstream on record, so that whoever undoes on this store reaches what this gateway reaches."""
    from django.conf import settings

    from reversi_site.recorded_upstreams import place_of, record_upstream

    options, tools = setting.options, setting.tools.get(name)
    spec = options.spec if options.spec is not None and options.spec.name == name else None
    by_flags = () if options.connector is None else (options.connector,)
    is_described = spec is None and name not in [each.name for each in by_flags]
    record_upstream(
        Path(settings.DATA),
        name,
        spec=spec,
        connectors=by_flags if is_described else setting.configuration.connectors,
        place=place_of(setting.configuration, name) if is_described else None,
        tools=None if tools is None else sorted(tools),
    )


async def _serve(setting: _Setting, wire: Wire | None, listening: socket.socket | None) -> None:
    stopping, opening = anyio.Event(), _Opening()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_stop_at_signal, stopping)
        tasks.start_soon(opening.give_up_when, stopping)
        tasks.start_soon(_keep_open, setting, opening, stopping)
        if wire is not None:
            await _serve_client(setting.options, opening, wire, stopping)
        elif listening is not None:
            await _serve_clients(opening, listening, stopping)
        stopping.set()
        await opening.is_closed.wait()
        tasks.cancel_scope.cancel()
    if opening.failure is not None:
        raise opening.failure


class NeverOpened(Unavailable):
    """The gateway ended before it was open."""

    code = "never_opened"


class _Opening:
    """A gateway that is opened while its client is greeted already: upstreams may take long to start."""

    def __init__(self) -> None:
        self._gateway: Gateway | None = None
        self._is_decided, self.is_closed = anyio.Event(), anyio.Event()
        self._scope = anyio.CancelScope()
        self.failure: Exception | None = None

    async def keep(self, opened: AbstractAsyncContextManager[Gateway], stopping: anyio.Event) -> None:
        """Open the gateway and keep it until it shall stop; a failure ends it, and is kept for whoever waits."""
        try:
            with self._scope:
                async with opened as self._gateway:
                    self._is_decided.set()
                    await stopping.wait()
        except Exception as error:  # noqa: BLE001  # raised where no group of tasks wraps it
            self.failure = error
        finally:
            self._is_decided.set()
            self.is_closed.set()

    async def gateway(self) -> Gateway:
        """Return the gateway when it is open; raises NeverOpened when it will never be."""
        await self._is_decided.wait()
        if self._gateway is None:
            raise NeverOpened
        return self._gateway

    async def give_up_when(self, stopping: anyio.Event) -> None:
        """Open no more what is not open when it shall stop."""
        await stopping.wait()
        if self._gateway is None:
            self._scope.cancel()


async def _keep_open(setting: _Setting, opening: _Opening, stopping: anyio.Event) -> None:
    try:
        await opening.keep(_opened(setting), stopping)
    finally:
        stopping.set()


@asynccontextmanager
async def _opened(setting: _Setting) -> AsyncIterator[Gateway]:
    from gateway.mcp.server import open_gateway
    from gateway.mcp.upstreams import open_upstreams
    from reversi_site.wiring import build_connectors

    connectors = build_connectors(setting.configuration)
    async with (
        open_upstreams(setting.specs, connectors) as upstreams,
        open_gateway(upstreams, tools_of=partial(_tools_of, setting, upstreams), console_url=_console_url()) as gateway,
        anyio.create_task_group() as beside,
    ):
        beside.start_soon(_keep_on_record, setting, upstreams)
        beside.start_soon(_do_live_jobs, gateway)
        try:
            yield gateway
        finally:
            beside.cancel_scope.cancel()


async def _stop_at_signal(stopping: anyio.Event) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            stopping.set()


async def _serve_client(options: GatewayOptions, opening: _Opening, wire: Wire, stopping: anyio.Event) -> None:
    from approvals.core.people import local_admin
    from gateway.mcp.server import server_of
    from gateway.mcp.stdio import local_visits, serve_stdio
    from reversi_site.identity import local_principal

    visit_of = local_visits(
        caller=local_admin(local_principal()),
        run_id=options.run_id,
        mode=options.mode,
        scope=options.scope,
        is_operator=options.is_operator,
    )
    server = server_of(opening.gateway, visit_of)
    await serve_stdio(server, incoming=wire.incoming, outgoing=wire.outgoing, stopping=stopping)


async def _serve_clients(opening: _Opening, listening: socket.socket, stopping: anyio.Event) -> None:
    from django.conf import settings
    from django.http.request import validate_host

    from gateway.mcp.http import http_app, serve_http

    try:
        gateway = await opening.gateway()
    except NeverOpened:
        return
    app = http_app(gateway, answers_to=lambda name: validate_host(name, settings.ALLOWED_HOSTS))
    await serve_http(app, listening=listening, stopping=stopping)


def _tools_of(setting: _Setting, upstreams: Upstreams, door: LoopDoor) -> Callable[[], Tools]:
    """Return what rollbacks here reach: this gateway's own sessions first, and whatever else the deployment reaches."""
    from reversi_site.wiring import Held, build_tools

    def tools() -> Tools:
        held: Mapping[str, Held] = {
            upstream.journal_name: Held(door, setting.tools.get(upstream.name)) for upstream in upstreams.servers
        }
        return build_tools(setting.configuration, held=held)

    return tools


async def _keep_on_record(setting: _Setting, upstreams: Upstreams) -> None:
    """Note which tools each server has listed, whenever that changes: a plan says by it what nobody runs."""
    from gateway.mcp.upstream import agent_name

    while True:
        for upstream in upstreams.servers:
            if upstream.known_tools is None:
                continue
            tools = frozenset(agent_name(upstream, tool) for tool in upstream.known_tools)
            if tools != setting.tools.get(upstream.name):
                setting.tools[upstream.name] = tools
                _record_or_warn(setting, upstream.name)
        await anyio.sleep(RECORD_EVERY_S)


def _record_or_warn(setting: _Setting, name: str) -> None:
    try:
        _record(setting, name)
    except ReversiError as error:
        logger.warning("the tools of %s cannot be put on record: %s", name, error)


async def _do_live_jobs(gateway: Gateway) -> None:
    from gateway.mcp.live_jobs import do_live_jobs

    def sessions_now() -> list[str]:
        return [upstream.journal_name for upstream in gateway.upstreams.servers if upstream.is_live]

    await do_live_jobs(gateway.journal, gateway.rollbacks.tools_now, sessions_now)


def _console_url() -> str | None:
    from django.conf import settings

    url: str | None = settings.REVERSI_CONSOLE_URL
    return None if url is None else url.rstrip("/")
