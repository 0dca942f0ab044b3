"""What agents see of the upstreams' tools, and where a call of one goes.

Tools that only undo are not listed. What an upstream once offered is remembered, so that a call which finds it down is
still known for what it is, and is journaled as failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from gateway.core.upstream_errors import UnknownTool, UpstreamUnavailable
from gateway.journal import Journal
from gateway.mcp.upstream import ToolObject, Upstream
from gateway.mcp.upstreams import Upstreams
from manifests_registry.core.snapshot import Snapshot
from manifests_registry.queries import current_snapshot


@dataclass(frozen=True, slots=True)
class Target:
    """Where a call goes: the upstream and its own name of the tool; `trouble` is why nothing can be sent there now."""

    upstream_name: str
    schema: Any
    upstream: Upstream | None = None
    own_name: str = ""
    trouble: UpstreamUnavailable | None = None


class Catalog:
    """The tools of the upstreams as agents know them."""

    def __init__(self, journal: Journal, upstreams: Upstreams) -> None:
        self._journal, self._upstreams = journal, upstreams
        self._seen: dict[str, Target] = {}

    @property
    def names(self) -> list[str]:
        """The tools that were seen so far."""
        return sorted(self._seen)

    def input_schema(self, tool: str) -> Mapping[str, Any] | None:
        """Return the input schema of a tool that was seen."""
        seen = self._seen.get(tool)
        return seen.schema if seen is not None and isinstance(seen.schema, Mapping) else None

    async def list_tools(self) -> list[ToolObject]:
        """Return the tools that agents may call, as their upstreams list them; raises ToolOfferedTwice."""
        manifests = await self._manifests()
        listed = await self._upstreams.list_tools()
        for tool in listed:
            self._seen.setdefault(tool["name"], Target("", tool.get("inputSchema")))
        return [tool for tool in listed if not _is_for_undo_only(manifests, tool["name"])]

    async def find(self, tool: str) -> Target:
        """Return where a call of the tool goes; raises UnknownTool, and UpstreamUnavailable for a tool never seen."""
        try:
            upstream, found = await self._upstreams.find(tool)
        except UpstreamUnavailable as unavailable:
            return await self._remembered(tool, unavailable)
        if upstream not in self._upstreams.offered:
            # A connector beside a server serves rollbacks; agents are offered the server.
            raise UnknownTool(tool)
        target = Target(upstream.name, found.get("inputSchema"), upstream, found["name"])
        self._seen[tool] = target
        return target

    async def _remembered(self, tool: str, trouble: UpstreamUnavailable) -> Target:
        seen = self._seen.get(tool)
        if seen is None and (await self._manifests()).get(tool) is None:
            raise trouble
        return Target(trouble.upstream, None if seen is None else seen.schema, trouble=trouble)

    async def _manifests(self) -> Snapshot:
        return await self._journal.run(current_snapshot, settings.CONFIGURATION.manifests)


def _is_for_undo_only(manifests: Snapshot, tool: str) -> bool:
    entry = manifests.get(tool)
    return entry is not None and entry.manifest.is_compensation_only
