"""A gateway before a shop in this process, behind the official client; every argument is by keyword."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
from mcp import Client
from mcp_types import Implementation

from approvals.core.people import Caller, local_admin
from gateway.executors import UpstreamExecutor, UpstreamReader
from gateway.mcp.door import LoopDoor
from gateway.mcp.server import Gateway, open_gateway
from gateway.mcp.stdio import local_visits
from gateway.mcp.upstream import State
from gateway.mcp.upstreams import Upstreams
from rollback.core.ports import NO_TOOLS, Tools
from tests.gateway.mcp.wires import ERAS, recorded

OWNER = "local:tester"
STRING = {"type": "string"}
TOOLS: tuple[dict[str, Any], ...] = (
    {"name": "shop.get", "inputSchema": {"type": "object", "properties": {"id": STRING}, "required": ["id"]}},
    {"name": "shop.order", "inputSchema": {"type": "object", "properties": {"item": STRING}, "required": ["item"]}},
    {"name": "shop.cancel", "inputSchema": {"type": "object", "properties": {"id": STRING}, "required": ["id"]}},
    {"name": "shop.charge", "inputSchema": {"type": "object", "properties": {"amount": {"type": "integer"}}}},
    {"name": "shop.rename", "inputSchema": {"type": "object", "properties": {"id": STRING, "item": STRING}}},
    {"name": "shop.unheard", "inputSchema": {"type": "object"}},
)
MANIFESTS: tuple[Mapping[str, Any], ...] = (
    {"tool": "shop.get", "effect": "read_only", "permission": "shop:read"},
    {"tool": "shop.cancel", "effect": "idempotent", "permission": "shop:write", "compensation_only": True},
    {
        "tool": "shop.order",
        "effect": "reversible",
        "permission": "shop:write",
        "key_carrier": {"meta": True},
        "compensation": {
            "tool": "shop.cancel",
            "argument_map": {"id": "$result.id"},
            "verification": {"tool": "shop.get", "arguments": {"id": "$result.id"}, "expect": {"item": None}},
        },
    },
    {
        "tool": "shop.rename",
        "effect": "reversible",
        "permission": "shop:write",
        "before": {"tool": "shop.get", "arguments": {"id": "$args.id"}},
        "compensation": {
            "tool": "shop.rename",
            "self_inverse": True,
            "argument_map": {"id": "$args.id", "item": "$before.item"},
        },
    },
    {"tool": "shop.charge", "effect": "irreversible", "permission": "shop:write", "approval": "always"},
)

Behaviour = Callable[[Mapping[str, Any]], Any]


class Shop:
    """An upstream that keeps orders; `behaviours` take the place of what a tool does.

    A tool whose name is in `held` waits until it is given up or let go, and says when it was reached; with `is_unsent`
    it then says that nothing was sent.
    """

    name, journal_name, prefix, is_live = "shop", "shop", "", False
    state = State.READY

    def __init__(self, *, behaviours: Mapping[str, Behaviour] | None = None, held: str | None = None) -> None:
        self.orders: dict[str, str] = {}
        self.calls: list[tuple[str, Mapping[str, Any], Mapping[str, Any]]] = []
        self.trouble: Exception | None = None
        self.is_unsent = False
        self.tools: Sequence[dict[str, Any]] = TOOLS
        self.behaviours, self._held = dict(behaviours or {}), held
        self.reached, self.let_go = anyio.Event(), anyio.Event()

    @property
    def known_tools(self) -> Sequence[dict[str, Any]]:
        return self.tools

    async def list_tools(self, *, is_fresh: bool = False) -> Sequence[dict[str, Any]]:
        await anyio.lowlevel.checkpoint()
        if self.trouble is not None:
            raise self.trouble
        return self.tools

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        timeout_ms: int,
        idempotency_key: str | None = None,
        meta: Mapping[str, Any] | None = None,
        on_progress: Any = None,
        on_unsent: Callable[[], None] | None = None,
    ) -> dict[str, Any]:
        await anyio.lowlevel.checkpoint()
        if self.trouble is not None:
            raise self.trouble
        self.calls.append((tool, dict(arguments), {**(meta or {}), "idempotency_key": idempotency_key}))
        if tool == self._held:
            self.reached.set()
            if on_progress is not None:
                await on_progress(1, 2, "half of it")
            await self._wait(on_unsent)
        answer = self.behaviours.get(tool, getattr(self, tool.removeprefix("shop.")))(arguments)
        if isinstance(answer, Exception):
            raise answer
        return dict(answer) if "content" in answer else structured(answer)

    async def _wait(self, on_unsent: Callable[[], None] | None) -> None:
        try:
            await self.let_go.wait()
        except anyio.get_cancelled_exc_class():
            if self.is_unsent and on_unsent is not None:
                on_unsent()
            raise

    def order(self, arguments: Mapping[str, Any]) -> Any:
        order = f"o{len(self.orders) + 1}"
        self.orders[order] = arguments["item"]
        return {"id": order}

    def get(self, arguments: Mapping[str, Any]) -> Any:
        return {"item": self.orders.get(arguments["id"])}

    def cancel(self, arguments: Mapping[str, Any]) -> Any:
        self.orders.pop(arguments["id"], None)
        return {}

    def rename(self, arguments: Mapping[str, Any]) -> Any:
        self.orders[arguments["id"]] = arguments["item"]
        return {}

    def charge(self, arguments: Mapping[str, Any]) -> Any:
        return {"charged": arguments["amount"]}

    def unheard(self, arguments: Mapping[str, Any]) -> Any:
        return {"unheard": True}


def structured(value: Mapping[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": dict(value)}


def write_manifests(folder: Path) -> Path:
    path = folder / "manifests.json"
    path.write_text(json.dumps(MANIFESTS))
    return path


def shop_tools(door: LoopDoor) -> Callable[[], Tools]:
    """Return what a rollback reaches: the shop, over the gateway's own session."""
    tools = Tools(UpstreamExecutor("shop", door, NO_TOOLS.executor), UpstreamReader("shop", door, None))
    return lambda: tools


@asynccontextmanager
async def shop_gateway(*, shop: Shop, beside: Sequence[Shop] = (), **fields: Any) -> AsyncIterator[Gateway]:
    # The shop stands where a server would: all that is asked of one is the Upstream protocol.
    upstreams = Upstreams([cast(Any, shop)], [cast(Any, each) for each in beside])
    async with open_gateway(upstreams, **{"tools_of": shop_tools, **fields}) as gateway:
        yield gateway


class Agent:
    """A client of the gateway, with each result as it was on the wire."""

    def __init__(self, client: Client, results: list[dict[str, Any]]) -> None:
        self.client, self.results = client, results

    async def call(self, tool: str, arguments: Mapping[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
        await self.client.call_tool(tool, dict(arguments or {}), **fields)
        return self._last("content")

    async def list_tools(self) -> list[dict[str, Any]]:
        await self.client.list_tools()
        tools: list[dict[str, Any]] = self._last("tools")["tools"]
        return tools

    def _last(self, key: str) -> dict[str, Any]:
        # The client asks for more than it was told to, such as for the tools of a call.
        return next(result for result in reversed(self.results) if key in result)


@asynccontextmanager
async def agent_of(
    gateway: Gateway, *, era: str = "2026", name: str = "tester", caller: Caller | None = None, **visits: Any
) -> AsyncIterator[Agent]:
    usual: dict[str, Any] = {"run_id": None, "mode": None, "scope": None, "is_operator": False}
    visit_of = local_visits(caller=caller or local_admin(OWNER), **{**usual, **visits})
    async with recorded(gateway.server(visit_of)) as (transport, results):
        info = Implementation(name=name, version="1")
        async with Client(transport, mode=ERAS[era], cache=None, client_info=info) as client:
            yield Agent(client, results)


@asynccontextmanager
async def shop_agent(
    *, shop: Shop | None = None, era: str = "2026", gateway: Mapping[str, Any] | None = None, **visits: Any
) -> AsyncIterator[Agent]:
    """Give one agent of a shop's gateway, which ends with the block."""
    async with (
        shop_gateway(shop=shop or Shop(), **(gateway or {})) as opened,
        agent_of(opened, era=era, **visits) as agent,
    ):
        yield agent


def text_of(answer: Mapping[str, Any]) -> str:
    return "\n".join(content["text"] for content in answer["content"])
