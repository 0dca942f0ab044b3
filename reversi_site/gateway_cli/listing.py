"""Ask a server once which tools it offers."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import anyio

from gateway.core.upstream_errors import UpstreamUnavailable
from gateway.core.upstream_specs import UpstreamSpec
from reversi_sdk.errors import Unavailable

Tools = Sequence[Mapping[str, Any]]


class ServerUnusable(Unavailable):
    """The server could not be started or reached, or did not say which tools it has."""

    code = "server_unusable"

    def __init__(self, place: str, why: str) -> None:
        super().__init__(f"the tools of {place} cannot be listed: it {why}")


def list_tools(spec: UpstreamSpec) -> Tools:
    """Start or reach the server, return its tools exactly as it lists them, and end it; raises ServerUnusable."""
    with _without_warnings():
        listed = anyio.run(_listed, spec)
    if isinstance(listed, str):
        raise ServerUnusable(spec.place, listed)
    return listed


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Leave out an upstream's warnings: they are for a gateway, which tries again; here the error says it."""
    upstreams = logging.getLogger("gateway.mcp")
    usual = upstreams.level
    upstreams.setLevel(logging.ERROR)
    try:
        yield
    finally:
        upstreams.setLevel(usual)


async def _listed(spec: UpstreamSpec) -> Tools | str:
    """Return the tools, or why there are none: an exception would leave the task group as a group of its own."""
    from gateway.mcp.server_upstream import ServerUpstream

    listed: Tools | str = ()
    server = ServerUpstream(spec, patience_s=0)
    async with anyio.create_task_group() as tasks:
        await tasks.start(server.run)
        try:
            listed = await server.list_tools()
        except UpstreamUnavailable as unavailable:
            listed = unavailable.why
        tasks.cancel_scope.cancel()
    return listed
