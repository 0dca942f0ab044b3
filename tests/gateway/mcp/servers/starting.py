"""The servers as upstreams, and over HTTP as running processes."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gateway.core.upstream_specs import UpstreamSpec

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
