"""The gateway as an MCP server: upstream tools and our own behind one list, every call answered in words.

`open_gateway` puts the parts together around one journal; the doors (`stdio`, `http`) serve what `Gateway.server` gives
for a way to tell who asks. At its end calls under way are settled first, then rollbacks come to the end of their step,
and the journal ends last; the upstreams must outlive it.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from mcp.server import Server
from mcp_types import CallToolRequestParams, PaginatedRequestParams

from gateway.core import answers, own_tools
from gateway.journal import Journal
from gateway.mcp.catalog import Catalog
from gateway.mcp.client_runs import ClientRuns
from gateway.mcp.door import LoopDoor
from gateway.mcp.lossless import Lossless, authored_call, authored_list
from gateway.mcp.own_tools import OwnTools
from gateway.mcp.rollbacks import Rollbacks, ToolsNow
from gateway.mcp.tool_calls import ToolCalls
from gateway.mcp.upstreams import Upstreams
from gateway.mcp.visits import Request, Visit, VisitOf
from reversi_site.kit.clock import Clock, SystemClock

NAME = "reversi-gateway"
INSTRUCTIONS = (
    "Calls made through this gateway are journaled, and can be undone as far as their tools allow. A call that is "
    "blocked, waits for an approval or ended in doubt says so in its text, with what to do. The tool reversi.run says "
    "which run your calls belong to; reversi.plan_rollback shows what could be undone."
)

# Clients give up on a call after a minute or so.
ANSWERS_AFTER_S = 40.0

ToolsOf = Callable[[LoopDoor], ToolsNow]
InputSchema = Callable[[str], Mapping[str, Any] | None]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Gateway:
    """The parts of a running gateway."""

    journal: Journal
    upstreams: Upstreams
    catalog: Catalog
    calls: ToolCalls
    own: OwnTools
    rollbacks: Rollbacks

    def server(self, visit_of: VisitOf) -> Server[Any]:
        """Return a server for the requests of one door."""

        async def myself() -> Gateway:
            return self

        return server_of(myself, visit_of, input_schema=self.catalog.input_schema)

    async def list_tools(self, visit: Visit) -> Sequence[Mapping[str, Any]]:
        """Return the tools that the visit may use, as far as they can be listed."""
        own = self.own.listed(visit)
        if not visit.may_call:
            return own
        try:
            return [*await self.catalog.list_tools(), *own]
        except Exception:
            # Who sees no tools at all cannot even ask what is wrong.
            logger.exception("the tools of the upstreams cannot be listed")
            return own

    async def call_tool(self, visit: Visit, tool: str, arguments: Mapping[str, Any]) -> answers.Result:
        """Answer a call, whatever comes of it."""
        if tool.startswith(own_tools.PREFIX):
            return await self.own.call(visit, tool, arguments)
        if not visit.may_call:
            return answers.failure(
                "permission_denied", f"{visit.caller.username} may not call {tool} through this door"
            )
        return await self.calls.call(visit, tool, arguments)


GatewayOf = Callable[[], Awaitable[Gateway]]


def server_of(gateway_of: GatewayOf, visit_of: VisitOf, *, input_schema: InputSchema | None = None) -> Server[Any]:
    """Return a server for the requests of one door; they wait for a gateway that is still being opened."""

    async def list_tools(request: Request, params: PaginatedRequestParams | None) -> Any:
        gateway = await gateway_of()
        return authored_list(request.protocol_version, await gateway.list_tools(visit_of(request)))

    async def call_tool(request: Request, params: CallToolRequestParams) -> Any:
        gateway = await gateway_of()
        answer = await gateway.call_tool(visit_of(request), params.name, params.arguments or {})
        return authored_call(request.protocol_version, answer)

    served: Server[Any] = Server(
        NAME,
        version=version("reversi"),
        instructions=INSTRUCTIONS,
        get_tool_input_schema=input_schema,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    served.middleware.append(Lossless())
    return served


@asynccontextmanager
async def open_gateway(
    upstreams: Upstreams,
    *,
    tools_of: ToolsOf,
    clock: Clock | None = None,
    console_url: str | None = None,
    answers_after_s: float = ANSWERS_AFTER_S,
) -> AsyncIterator[Gateway]:
    """Keep a gateway over open upstreams for the block.

    `tools_of` says what rollbacks reach, given the way to this gateway's own sessions. A rollback that takes longer
    than `answers_after_s` is answered with how far it is.
    """
    clock = clock or SystemClock()
    async with (
        Journal.open() as journal,
        Rollbacks.open(tools_of(LoopDoor(upstreams)), clock=clock) as rollbacks,
    ):
        catalog, runs = Catalog(journal, upstreams), ClientRuns(journal, clock=clock)
        calls = ToolCalls(journal, upstreams, catalog, runs, console_url=console_url)
        own = OwnTools(journal, runs, rollbacks, clock=clock, answers_after_s=answers_after_s)
        try:
            yield Gateway(journal, upstreams, catalog, calls, own, rollbacks)
        finally:
            await calls.settled()
