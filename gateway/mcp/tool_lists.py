"""The list of an upstream's tools: every page of it, each tool as it was sent.

What no client could call is left out with a word in the log: a tool without a name or an input schema, a name that came
before, and since 2026-07-28 a tool that marks its arguments for headers in a way that the protocol forbids.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mcp.shared.inbound import find_invalid_x_mcp_header, x_mcp_header_map

from gateway.core.upstream_errors import UpstreamUnavailable
from gateway.mcp.session import Session

LIST_TIMEOUT_MS = 20_000
# A listing that goes on forever must not.
MOST_PAGES = 200

logger = logging.getLogger(__name__)

ToolObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolList:
    """The tools, and for how long the upstream says that they are so: None until it tells of a change."""

    tools: Sequence[ToolObject]
    fresh_s: float | None


async def fetch_tools(session: Session) -> ToolList:
    """Ask for every page; raises what a request raises."""
    listed: list[ToolObject] = []
    params: dict[str, Any] = {}
    for _ in range(MOST_PAGES):
        page = await session.request("tools/list", params, timeout_ms=LIST_TIMEOUT_MS)
        listed.extend(page["tools"])
        if page.get("nextCursor") is None:
            tools = tuple(_usable(session, listed))
            session.mirrored = {tool["name"]: x_mcp_header_map(tool["inputSchema"]) for tool in tools}
            return ToolList(tools, _fresh_s(session, page))
        params = {"cursor": page["nextCursor"]}
    raise UpstreamUnavailable(session.spec.name, f"lists its tools on more than {MOST_PAGES} pages")


def _usable(session: Session, listed: Iterable[ToolObject]) -> Iterator[ToolObject]:
    names: set[str] = set()
    for tool in listed:
        problem = "is listed twice" if tool["name"] in names else _forbidden(session, tool)
        if problem is None:
            names.add(tool["name"])
            yield tool
        else:
            logger.warning("%s of the upstream %s is left out: it %s", tool["name"], session.spec.name, problem)


def _forbidden(session: Session, tool: ToolObject) -> str | None:
    reason = find_invalid_x_mcp_header(tool["inputSchema"]) if session.is_modern else None
    return None if reason is None else f"marks arguments for headers as nobody may: {reason}"


def _fresh_s(session: Session, page: ToolObject) -> float | None:
    lifetime_ms = page.get("ttlMs")
    if session.is_listening or not session.is_modern or not isinstance(lifetime_ms, int | float):
        return None
    return max(lifetime_ms, 0) / 1000
