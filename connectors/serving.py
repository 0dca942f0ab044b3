"""A connector as an MCP server over standard input and output, for clients of every revision of the protocol.

A result goes out as structured content and as the same JSON in a text. A definite failure is an error result with its
text; when nobody can say whether the effect happened, the error result says so in
`_meta["reversi/outcome"]: "uncertain"` (D39). Undo tools are served too, since rollbacks reach them here, and are
marked with `_meta["reversi/compensation_only"]`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from importlib.metadata import version
from typing import Any, Final

import anyio
import anyio.to_thread
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
)

from connectors.core.connector import Connector
from connectors.core.outcomes import EffectUncertainError, ToolError
from connectors.core.tool import CallContext, Tool
from connectors.wire import stdio_streams
from reversi_sdk.model import Effect

KEY_META: Final = "idempotency_key"
OVERWRITE_META: Final = "reversi/overwrite"
OUTCOME_META: Final = "reversi/outcome"
COMPENSATION_ONLY_META: Final = "reversi/compensation_only"

Json = dict[str, Any]


def serve(connector: Connector) -> None:
    """Serve the connector until the client leaves or a signal ends it; raises `LineTooLong` for a client gone wild."""
    anyio.run(_serve, build_server(connector))


async def _serve(server: Server) -> None:
    async with stdio_streams() as (requests, answers):
        await server.run(requests, answers, server.create_initialization_options())


def build_server(connector: Connector) -> Server:
    """Return the MCP server that offers the connector's tools."""

    async def list_tools(_context: ServerRequestContext, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult.model_validate({"tools": listed_tools(connector)})

    async def call_tool(context: ServerRequestContext, params: CallToolRequestParams) -> CallToolResult:
        if params.name not in connector.tools:
            raise MCPError(INVALID_PARAMS, f"connector {connector.name} has no tool {params.name}")
        make_call = partial(answer, connector, params.name, params.arguments or {}, context.meta or {})
        return CallToolResult.model_validate(await anyio.to_thread.run_sync(make_call))

    return Server(
        f"reversi-connectors-{connector.name}",
        version=version("reversi"),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def listed_tools(connector: Connector) -> list[Json]:
    """Describe every tool as MCP lists it, in table order."""
    schemas = connector.input_schemas
    return [_listed(tool, schemas[name]) for name, tool in connector.tools.items()]


def _listed(tool: Tool, schema: Json) -> Json:
    listed: Json = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": schema,
        "annotations": _annotations(tool.effect),
    }
    return {**listed, "_meta": {COMPENSATION_ONLY_META: True}} if tool.is_compensation_only else listed


def _annotations(effect: Effect) -> Json:
    """Say what the row declares and nothing more: left out, a hint counts as the worse of its two values."""
    match effect:
        case Effect.READ_ONLY:
            return {"readOnlyHint": True}
        case Effect.IDEMPOTENT:
            return {"readOnlyHint": False, "idempotentHint": True}
        case Effect.REVERSIBLE | Effect.COMPENSABLE | Effect.IRREVERSIBLE:
            return {"readOnlyHint": False}


def answer(connector: Connector, tool: str, arguments: Mapping[str, Any], meta: Mapping[str, Any]) -> Json:
    """Make one call and word its end as the result of `tools/call`."""
    try:
        result = connector.call(tool, arguments, _context(meta))
        return _succeeded(result)
    except ToolError as error:
        return _failed(error)
    except EffectUncertainError as error:
        return {**_failed(error), "_meta": {OUTCOME_META: "uncertain"}}


def _context(meta: Mapping[str, Any]) -> CallContext:
    key, overwrite = meta.get(KEY_META), meta.get(OVERWRITE_META, False)
    if not isinstance(key, str | None):
        raise ToolError(f"_meta.{KEY_META} must be a string")
    if not isinstance(overwrite, bool):
        raise ToolError(f"_meta.{OVERWRITE_META} must be a boolean")
    return CallContext(idempotency_key=key, is_overwrite_allowed=overwrite)


def _succeeded(result: Any) -> Json:
    text: Json = {"content": [{"type": "text", "text": json.dumps(result, ensure_ascii=False)}]}
    # Structured content was an object only before the revision of 2026; a text serves every client.
    return {**text, "structuredContent": result} if isinstance(result, dict) else text


def _failed(error: Exception) -> Json:
    return {"content": [{"type": "text", "text": str(error)}], "isError": True}
