"""All upstreams of a gateway, and which of them a tool belongs to.

Agents and manifests know a tool by its upstream's prefix and its own name. Two upstreams that offer one name at the
start are an error. One that comes to offer a name later gets no call of it: whoever offered it first keeps it for as
long as it lists it, also while it is down, so that no call ever changes sides because a server was slow.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.shared.dispatcher import ProgressFnT

from connectors.core.connector import Connector
from gateway.core.results import value_of
from gateway.core.upstream_errors import UnknownTool, UpstreamUnavailable, raise_if_error
from gateway.core.upstream_specs import UpstreamSpec
from gateway.mcp.connector_upstream import ConnectorUpstream
from gateway.mcp.server_upstream import CONNECT_PATIENCE_S, ServerUpstream
from gateway.mcp.upstream import OnUnsent, State, ToolObject, Upstream, agent_name
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
        # Which upstream a name that agents use belongs to.
        self._owners: dict[str, str] = {}
        self._complaints: set[str] = set()

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
        """Return the upstream of that name; a name of a session is its own only while that session goes on."""
        return next((upstream for upstream in self.all if name in (upstream.name, upstream.journal_name)), None)

    async def list_tools(self, *, is_fresh: bool = False) -> list[ToolObject]:
        """Return what agents may see, under the names they use; one that is down is left out and logged."""
        tools = await self._all_tools(self.offered, is_fresh=is_fresh)
        return [
            {**tool, "name": agent_name(upstream, tool)}
            for upstream in self.offered
            for tool in tools[upstream.name]
            if self._is_owner(upstream, agent_name(upstream, tool))
        ]

    async def settle_names(self) -> ToolOfferedTwice | None:
        """Give each name to whoever offers it, as far as they are up; return what is wrong when two do."""
        owners: dict[str, str] = {}
        up = [upstream for upstream in self.offered if upstream.state is State.READY]
        tools = await self._all_tools(up, is_fresh=False)
        for upstream in up:
            for name in (agent_name(upstream, tool) for tool in tools[upstream.name]):
                if owners.setdefault(name, upstream.name) != upstream.name:
                    return ToolOfferedTwice(name, owners[name], upstream.name)
        self._owners = owners
        return None

    async def _all_tools(self, upstreams: Sequence[Upstream], *, is_fresh: bool) -> Mapping[str, Sequence[ToolObject]]:
        listed: dict[str, Sequence[ToolObject]] = {}

        async def look(upstream: Upstream) -> None:
            listed[upstream.name] = await _tools_of(upstream, is_fresh=is_fresh)

        async with anyio.create_task_group() as tasks:
            for upstream in upstreams:
                tasks.start_soon(look, upstream)
        return listed

    def _is_owner(self, upstream: Upstream, name: str) -> bool:
        if name.startswith(OUR_TOOLS):
            self._complain(f"{name} of the upstream {upstream.name} is left out: the name is ours")
            return False
        owner = self._owners.setdefault(name, upstream.name)
        if owner != upstream.name and not self._is_known_to_offer(owner, name):
            owner = self._owners[name] = upstream.name
        if owner != upstream.name:
            self._complain(f"{name} of the upstream {upstream.name} is left out: {owner} offers it")
        return owner == upstream.name

    def _is_known_to_offer(self, owner: str, name: str) -> bool:
        upstream = self.named(owner)
        known = None if upstream is None else upstream.known_tools
        return upstream is not None and any(agent_name(upstream, tool) == name for tool in known or ())

    def _complain(self, complaint: str) -> None:
        if complaint not in self._complaints:
            self._complaints.add(complaint)
            logger.warning("%s", complaint)

    async def find(self, tool: str, *, upstream: str | None = None) -> tuple[Upstream, ToolObject]:
        """Return the upstream that offers the tool, with the tool as it lists it.

        `upstream` is asked first, where it is one of ours; while it is down and may offer the tool, nobody else is.
        Raises UnknownTool, and UpstreamUnavailable when the tool could be one of an upstream that is down.
        """
        down: UpstreamUnavailable | None = None
        for candidate in self._in_order(tool, upstream):
            try:
                found = await _offered(candidate, tool)
            except UpstreamUnavailable as unavailable:
                if candidate.name == upstream:
                    raise
                down = down or unavailable
                continue
            if found is not None and (candidate.name == upstream or self._is_found(candidate, tool)):
                return candidate, found
        raise down or UnknownTool(tool)

    def _is_found(self, candidate: Upstream, tool: str) -> bool:
        return candidate not in self.offered or self._is_owner(candidate, tool)

    def _in_order(self, tool: str, first: str | None) -> Sequence[Upstream]:
        """Return who may offer the tool: who must, who did, who can be asked at once, and the rest."""
        owner = self._owners.get(tool)

        def rank(upstream: Upstream) -> tuple[bool, bool, bool, bool]:
            is_ready = upstream.state is State.READY
            return upstream.name != first, upstream.name != owner, upstream not in self.offered, not is_ready

        return sorted((each for each in self.all if tool.startswith(each.prefix)), key=rank)

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
        on_unsent: OnUnsent | None = None,
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
            on_unsent=on_unsent,
        )

    async def offered_by(self, upstream: str, tool: str) -> ToolObject | None:
        """Return the tool as that upstream lists it, None when it does not; raises UpstreamUnavailable."""
        asked = self.named(upstream)
        if asked is None or not tool.startswith(asked.prefix):
            return None
        return await _offered(asked, tool)

    async def count_tools(self, upstream: str) -> int:
        """Return how many tools the upstream lists; raises UpstreamUnavailable."""
        asked = self.named(upstream)
        return 0 if asked is None else len(await asked.list_tools(is_fresh=True))

    async def call_at(
        self,
        upstream: str,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        timeout_ms: int,
        idempotency_key: str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Call the tool at that upstream and no other; raises UnknownTool and what the upstream raises."""
        asked = self.named(upstream)
        if asked is None or not tool.startswith(asked.prefix):
            raise UnknownTool(tool)
        return await asked.call(
            tool.removeprefix(asked.prefix),
            arguments,
            timeout_ms=timeout_ms,
            idempotency_key=idempotency_key,
            meta=meta,
        )

    async def read(
        self, tool: str, arguments: Mapping[str, Any], *, timeout_ms: int, upstream: str | None = None
    ) -> Any:
        """Make a read and return its value (D15); raises also what the tool itself reports."""
        answer = await self.call(tool, arguments, timeout_ms=timeout_ms, upstream=upstream)
        raise_if_error(answer)
        return value_of(answer)


async def _tools_of(upstream: Upstream, *, is_fresh: bool) -> Sequence[ToolObject]:
    try:
        return await upstream.list_tools(is_fresh=is_fresh)
    except UpstreamUnavailable as unavailable:
        logger.warning("the tools of %s are left out: it %s", upstream.name, unavailable.why)
        return ()


async def _offered(upstream: Upstream, tool: str) -> ToolObject | None:
    """Return the tool as the upstream lists it; one that is down is taken at its last word, if there is any."""
    own, known = tool.removeprefix(upstream.prefix), upstream.known_tools
    tools = known if upstream.state is not State.READY and known is not None else await upstream.list_tools()
    return next((each for each in tools if each["name"] == own), None)


@asynccontextmanager
async def open_upstreams(
    specs: Sequence[UpstreamSpec],
    connectors: Mapping[str, Connector] | None = None,
    *,
    patience_s: float = CONNECT_PATIENCE_S,
) -> AsyncIterator[Upstreams]:
    """Keep the upstreams open for the block; when it begins each has been tried once, whatever came of it.

    Raises ToolOfferedTwice.
    """
    servers = [ServerUpstream(spec, patience_s=patience_s) for spec in specs]
    inside = [ConnectorUpstream(name, connector) for name, connector in (connectors or {}).items()]
    upstreams = Upstreams(servers, inside)
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        async with anyio.create_task_group() as first_tries:
            for server in servers:
                first_tries.start_soon(_start, tasks, server)
        try:
            failure = await upstreams.settle_names()
            if failure is None:
                yield upstreams
        except Exception as error:  # noqa: BLE001  # raised below: out of the group it would come as a group
            failure = error
        finally:
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _start(tasks: anyio.abc.TaskGroup, server: ServerUpstream) -> None:
    await tasks.start(server.run)
