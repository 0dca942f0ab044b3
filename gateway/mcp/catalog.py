"""What agents see of the upstreams' tools, and where a call of one goes.

Tools that only undo are not listed. A tool of an upstream that is down is known by what the upstream listed last, or by
its manifest, so that a call of it is journaled as what it is: one that failed.
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

    @property
    def journal_name(self) -> str:
        """What a step of the call remembers the upstream by."""
        return self.upstream_name if self.upstream is None else self.upstream.journal_name


class Catalog:
    """The tools of the upstreams as agents know them."""

    def __init__(self, journal: Journal, upstreams: Upstreams) -> None:
        self._journal, self._upstreams = journal, upstreams
        self._schemas: dict[str, Any] = {}

    @property
    def names(self) -> list[str]:
        """The tools that were seen so far."""
        return sorted(self._schemas)

    def input_schema(self, tool: str) -> Mapping[str, Any] | None:
        """Return the input schema of a tool that was seen."""
        schema = self._schemas.get(tool)
        return schema if isinstance(schema, Mapping) else None

    async def list_tools(self) -> list[ToolObject]:
        """Return the tools that agents may call, as their upstreams list them; an upstream that is down is left out."""
        manifests = await self._manifests()
        listed = await self._upstreams.list_tools()
        for tool in listed:
            self._schemas[tool["name"]] = tool["inputSchema"]
        return [tool for tool in listed if not _is_for_undo_only(manifests, tool["name"])]

    async def find(self, tool: str) -> Target:
        """Return where a call of the tool goes; raises UnknownTool, and UpstreamUnavailable for a tool nobody knows."""
        try:
            upstream, found = await self._upstreams.find(tool)
        except UpstreamUnavailable as unavailable:
            if (await self._manifests()).get(tool) is None:
                raise
            return Target(unavailable.upstream, None, trouble=unavailable)
        if upstream not in self._upstreams.offered:
            # A connector beside a server serves rollbacks; agents are offered the server.
            raise UnknownTool(tool)
        self._schemas[tool] = found["inputSchema"]
        return Target(upstream.name, found["inputSchema"], upstream, found["name"])

    async def _manifests(self) -> Snapshot:
        return await self._journal.run(current_snapshot, settings.CONFIGURATION.manifests)


def _is_for_undo_only(manifests: Snapshot, tool: str) -> bool:
    entry = manifests.get(tool)
    return entry is not None and entry.manifest.is_compensation_only
