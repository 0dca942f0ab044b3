"""A connector in this process as an upstream: the same answers as from its own MCP server, without the process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
from mcp.shared.dispatcher import ProgressFnT

from connectors.core.connector import Connector
from connectors.serving import KEY_META, answer, listed_tools
from gateway.core.upstream_errors import UpstreamRefused, UpstreamTimeout
from gateway.mcp.upstream import OnUnsent, State, ToolObject

INVALID_PARAMS = -32602


class ConnectorUpstream:
    """Calls run in a thread; one that is given up goes on there to its end, and nobody hears of it."""

    prefix = ""
    is_live = False
    state = State.READY

    def __init__(self, name: str, connector: Connector) -> None:
        self.name, self._connector = name, connector

    @property
    def journal_name(self) -> str:
        """What steps remember it by."""
        return self.name

    @property
    def known_tools(self) -> Sequence[ToolObject]:
        """Its tools."""
        return listed_tools(self._connector)

    async def list_tools(self, *, is_fresh: bool = False) -> Sequence[ToolObject]:
        """Return the connector's tools as its MCP server lists them."""
        return listed_tools(self._connector)

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        timeout_ms: int,
        idempotency_key: str | None = None,
        meta: Mapping[str, Any] | None = None,
        on_progress: ProgressFnT | None = None,
        on_unsent: OnUnsent | None = None,
    ) -> dict[str, Any]:
        """Run the tool and word its end as the connector's own server does."""
        if tool not in self._connector.tools:
            raise UpstreamRefused(self.name, INVALID_PARAMS, f"connector {self._connector.name} has no tool {tool}")
        said = {**(meta or {}), KEY_META: idempotency_key}
        run = partial(answer, self._connector, tool, dict(arguments), said)
        with anyio.move_on_after(timeout_ms / 1000):
            return await anyio.to_thread.run_sync(run, abandon_on_cancel=True)
        raise UpstreamTimeout(self.name, timeout_ms)
