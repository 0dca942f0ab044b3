"""The servers as upstreams, and over HTTP as running processes."""

import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio

from gateway.core.upstream_specs import UpstreamSpec
from gateway.mcp.server_upstream import ServerUpstream
from gateway.mcp.upstreams import open_upstreams

ROOT = Path(__file__).parents[4]
SERVERS = "tests.gateway.mcp.servers"
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")


def _script(name: str, *options: str) -> tuple[str, ...]:
    return sys.executable, "-m", f"{SERVERS}.{name}", *options


def plain(
    *,
    name: str = "plain",
    revision: str = "2025-06-18",
    pids: Path | None = None,
    options: Sequence[str] = (),
    **spec: Any,
) -> UpstreamSpec:
    noting = ("--pid-file", str(pids)) if pids else ()
    command = _script("plain_stdio", "--revision", revision, *noting, *options)
    return UpstreamSpec(name, **{"command": command, "cwd": ROOT, **spec})


def hostile(
    *, name: str = "hostile", pids: Path | None = None, options: Sequence[str] = (), **spec: Any
) -> UpstreamSpec:
    noting = ("--pid-file", str(pids)) if pids else ()
    command = _script("hostile_stdio", *noting, *options)
    return UpstreamSpec(name, **{"command": command, "cwd": ROOT, **spec})


@contextmanager
def http_server(*, revision: str = "2025-11-25", style: str = "json", port: int = 0) -> Iterator[str]:
    """Run the plain server and give its URL; it ends with the block."""
    command = _script("plain_http", "--revision", revision, "--style", style, "--port", str(port))
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        finally:
            process.kill()


@asynccontextmanager
async def open_server(spec: UpstreamSpec, *, patience_s: float = 10.0) -> AsyncIterator[ServerUpstream]:
    """Open the one upstream, and give it as gateways keep it."""
    async with open_upstreams([spec], patience_s=patience_s) as upstreams:
        yield upstreams.servers[0]


def text_of(answer: Mapping[str, Any]) -> str:
    (content,) = answer["content"]
    return str(content["text"])


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what another process does; gives up after ten seconds."""
    with anyio.fail_after(10):
        while not condition():
            await anyio.sleep(0.01)


async def received_by(upstream: ServerUpstream) -> list[dict[str, Any]]:
    """Return every message that the plain server has received."""
    answer = await upstream.call("received", {}, timeout_ms=20_000)
    return list(answer["structuredContent"]["messages"])


async def until_called(upstream: ServerUpstream, tool: str) -> None:
    """Wait until the plain server has received a call of the tool."""
    with anyio.fail_after(10):
        while tool not in [(each.get("params") or {}).get("name") for each in await received_by(upstream)]:
            await anyio.sleep(0.01)
