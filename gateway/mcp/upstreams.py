"""All upstreams of a gateway, and which of them a tool belongs to.

Agents and manifests know a tool by its upstream's prefix and its own name. Two upstreams that offer one name make the
name nobody's: a call must not depend on who was asked first.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.shared.dispatcher import ProgressFnT

from approvals.core.upstreams import upstream_of as default_upstream
from connectors.core.connector import Connector
from gateway.core.results import value_of
from gateway.core.upstream_errors import UnknownTool, UpstreamUnavailable, raise_if_error
from gateway.core.upstream_specs import UpstreamSpec
from gateway.mcp.connector_upstream import ConnectorUpstream
from gateway.mcp.upstream import CONNECT_PATIENCE_S, ServerUpstream, ToolObject, Upstream
from reversi_sdk.errors import Conflict

OUR_TOOLS = "reversi."

logger = logging.getLogger(__name__)


class ToolOfferedTwice(Conflict):
    """Two upstreams offer a tool by the same name."""

    code = "tool_offered_twice"

    def __init__(self, tool: str, first: str, second: str) -> None:
        super().__init__(f"both {first} and {second} offer {tool}: give one of them a prefix")
        self.tool = tool


class Upstreams:
    """The upstreams in their order. Tools of the connectors come last, and are offered only where nobody else is."""

    def __init__(self, servers: Sequence[ServerUpstream], connectors: Sequence[ConnectorUpstream]) -> None:
        self._servers, self._connectors = servers, connectors

    @property
    def all(self) -> Sequence[Upstream]:
        """Every upstream, servers first."""
        return [*self._servers, *self._connectors]

    @property
    def servers(self) -> Sequence[ServerUpstream]:
        """The upstreams that are MCP servers."""
        return self._servers

    @property
    def offered(self) -> Sequence[Upstream]:
        """The upstreams whose tools agents see: the servers, or the connectors where there is no server."""
        return self._servers or self._connectors

    def named(self, name: str) -> Upstream | None:
        """Return the upstream of that name."""
        return next((upstream for upstream in self.all if upstream.name == name), None)

    async def list_tools(self, *, is_fresh: bool = False) -> list[ToolObject]:
        """Return what agents may see, under the names they use; one that is down is left out and logged.

        Raises ToolOfferedTwice.
        """
        owners: dict[str, str] = {}
        listed: list[ToolObject] = []
        for upstream in self.offered:
            for tool in await _tools_of(upstream, is_fresh=is_fresh):
                name = upstream.prefix + tool["name"]
                if name.startswith(OUR_TOOLS):
                    logger.warning("%s of the upstream %s is left out: the name is ours", name, upstream.name)
                    continue
                if name in owners:
                    raise ToolOfferedTwice(name, owners[name], upstream.name)
                owners[name] = upstream.name
                listed.append({**tool, "name": name})
        return listed

    async def find(self, tool: str, *, upstream: str | None = None) -> tuple[Upstream, ToolObject]:
        """Return the upstream that offers the tool, with the tool as it lists it.

        `upstream` is asked first, where it is one of ours. Raises UnknownTool, and UpstreamUnavailable when the tool
        could be one of an upstream that is down.
        """
        down: UpstreamUnavailable | None = None
        for candidate in self._in_order(upstream):
            if not tool.startswith(candidate.prefix):
                continue
            own = tool.removeprefix(candidate.prefix)
            try:
                tools = await candidate.list_tools()
            except UpstreamUnavailable as unavailable:
                down = down or unavailable
                continue
            found = next((each for each in tools if each["name"] == own), None)
            if found is not None:
                return candidate, found
        raise down or UnknownTool(tool)

    def _in_order(self, first: str | None) -> Sequence[Upstream]:
        return sorted(self.all, key=lambda upstream: upstream.name != first)

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        timeout_ms: int,
        upstream: str | None = None,
        idempotency_key: str | None = None,
        meta: Mapping[str, Any] | None = None,
        on_progress: ProgressFnT | None = None,
    ) -> dict[str, Any]:
        """Call a tool by the name that agents use; raises what `find` and the upstream raise."""
        owner, found = await self.find(tool, upstream=upstream)
        return await owner.call(
            found["name"],
            arguments,
            timeout_ms=timeout_ms,
            idempotency_key=idempotency_key,
            meta=meta,
            on_progress=on_progress,
        )

    async def read(
        self, tool: str, arguments: Mapping[str, Any], *, timeout_ms: int, upstream: str | None = None
    ) -> Any:
        """Make a read and return its value (D15); raises also what the tool itself reports."""
        answer = await self.call(tool, arguments, timeout_ms=timeout_ms, upstream=upstream)
        raise_if_error(answer)
        return value_of(answer)

    async def upstream_name_of(self, tool: str) -> str:
        """Return the upstream that a call of the tool goes to; the tool's own prefix when nobody offers it."""
        try:
            return (await self.find(tool))[0].name
        except (UnknownTool, UpstreamUnavailable):
            return self.offered[0].name if len(self.offered) == 1 else default_upstream(tool)

    def is_live(self, name: str) -> bool:
        """Tell whether only this gateway may undo what went to the upstream of that name."""
        upstream = self.named(name)
        return upstream is not None and upstream.is_live


async def _tools_of(upstream: Upstream, *, is_fresh: bool) -> Sequence[ToolObject]:
    try:
        return await upstream.list_tools(is_fresh=is_fresh)
    except UpstreamUnavailable as unavailable:
        logger.warning("the tools of %s are left out: it %s", upstream.name, unavailable.why)
        return ()


@asynccontextmanager
async def open_upstreams(
    specs: Sequence[UpstreamSpec],
    connectors: Mapping[str, Connector] | None = None,
    *,
    patience_s: float = CONNECT_PATIENCE_S,
) -> AsyncIterator[Upstreams]:
    """Keep the upstreams open for the block; when it begins each has been tried once, whatever came of it."""
    servers = [ServerUpstream(spec, patience_s=patience_s) for spec in specs]
    inside = [ConnectorUpstream(name, connector) for name, connector in (connectors or {}).items()]
    async with anyio.create_task_group() as tasks:
        async with anyio.create_task_group() as first_tries:
            for server in servers:
                first_tries.start_soon(_start, tasks, server)
        try:
            yield Upstreams(servers, inside)
        finally:
            tasks.cancel_scope.cancel()


async def _start(tasks: anyio.abc.TaskGroup, server: ServerUpstream) -> None:
    await tasks.start(server.run)
