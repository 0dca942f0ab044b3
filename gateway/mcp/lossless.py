"""Pass results on as they were authored, whatever the library's models know of them.

The library checks each result against the models of the client's revision and drops every field that they do not have.
Here it may check, and complete the envelope of its revision; then what the author wrote is put back. A result that a
revision cannot carry at all is told in a text: its call was made, and an error of the protocol would hide that.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp_types import SERVER_INFO_META_KEY
from mcp_types import methods as protocol
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

Result = dict[str, Any]

CALL, LIST = "tools/call", "tools/list"
COMPLETE = "complete"
_ENVELOPES: Mapping[str, Mapping[str, Any]] = {
    CALL: {"resultType": COMPLETE},
    LIST: {"resultType": COMPLETE, "ttlMs": 0, "cacheScope": "private"},
}

logger = logging.getLogger(__name__)
_authored: ContextVar[Result | None] = ContextVar("authored", default=None)


class Lossless(ServerMiddleware[Any]):
    """Puts back what the library dropped from results that were authored with this module."""

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        token = _authored.set(None)
        try:
            sieved = await call_next(ctx)
            authored = _authored.get()
        finally:
            _authored.reset(token)
        return sieved if authored is None or not isinstance(sieved, dict) else put_back(sieved, authored)


def put_back(sieved: Mapping[str, Any], authored: Mapping[str, Any]) -> Result:
    """Return the authored result with what the envelope has besides."""
    merged = {**sieved, **authored}
    metas = [meta for meta in (sieved.get("_meta"), authored.get("_meta")) if isinstance(meta, Mapping)]
    return {**merged, "_meta": {key: value for meta in metas for key, value in meta.items()}} if metas else merged


def authored_call(version: str, result: Mapping[str, Any]) -> Result:
    """Return the result of a call as a handler gives it to the library, and remember it as it is."""
    own = _without_envelope(result)
    fitting = next((each for each in _call_forms(own) if _fits(CALL, version, each)), _told(own))
    return _author(CALL, version, fitting)


def authored_list(version: str, tools: Sequence[Mapping[str, Any]]) -> Result:
    """Return a list of tools as a handler gives it to the library; a tool that the revision cannot name is left out."""
    forms = [
        (tool, next((each for each in _tool_forms(tool) if _fits(LIST, version, {"tools": [each]})), None))
        for tool in tools
    ]
    for tool, form in forms:
        if form is None:
            logger.warning(
                "%r is not listed: a client of %s could not read what its server says of it", tool.get("name"), version
            )
    return _author(LIST, version, {"tools": [form for _, form in forms if form is not None]})


def _author(method: str, version: str, result: Result) -> Result:
    _authored.set(result)
    # Not only in what the library gets: what it then takes for the envelope is what the client needs.
    return {**result, **_envelope(method, version)}


def _envelope(method: str, version: str) -> Mapping[str, Any]:
    return _ENVELOPES[method] if version in MODERN_PROTOCOL_VERSIONS else {}


def _without_envelope(result: Mapping[str, Any]) -> Result:
    """Return the result without what its own server said about the exchange, which is not the client's exchange."""
    own = {key: value for key, value in result.items() if key != "resultType"}
    meta = own.get("_meta")
    if not isinstance(meta, Mapping) or SERVER_INFO_META_KEY not in meta:
        return own
    kept = {key: value for key, value in meta.items() if key != SERVER_INFO_META_KEY}
    return {**own, "_meta": kept} if kept else {key: value for key, value in own.items() if key != "_meta"}


def _call_forms(result: Result) -> Iterator[Result]:
    """Yield the result, and what is left of it for a revision whose structured content is an object only."""
    yield result
    yield {key: value for key, value in result.items() if key != "structuredContent"}


def _told(result: Mapping[str, Any]) -> Result:
    """Return the whole result as one text."""
    said = {key: result[key] for key in ("content", "structuredContent") if key in result}
    lead = "The tool answered in a form that your revision of the protocol cannot carry. As JSON:"
    told: Result = {"content": [{"type": "text", "text": f"{lead}\n{json.dumps(said, ensure_ascii=False)}"}]}
    kept = {key: value for key, value in result.items() if key == "isError" and isinstance(value, bool)}
    meta = result.get("_meta")
    return {**told, **kept, **({"_meta": meta} if isinstance(meta, Mapping) else {})}


def _tool_forms(tool: Mapping[str, Any]) -> Iterator[Result]:
    yield dict(tool)
    yield {key: value for key, value in tool.items() if key != "outputSchema"}


def _fits(method: str, version: str, result: Mapping[str, Any]) -> bool:
    try:
        protocol.validate_server_result(method, version, {**result, **_envelope(method, version)})
    except ValidationError:
        return False
    return True
