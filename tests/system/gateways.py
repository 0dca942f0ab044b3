"""Real gateways, as processes, before real servers, on the test's database; every argument is by keyword."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from mcp import Client, StdioServerParameters, stdio_client
from mcp_types import Implementation

from tests.databases import Database
from tests.postgres import REPOSITORY

HOSTILE = "tests.gateway.mcp.servers.hostile_stdio"


def environment(db: Database, folder: Path) -> dict[str, str]:
    """Return the environment of a process of this deployment; `folder` holds its data."""
    # What this process puts on the queue is signed: a worker with another key would drop it.
    keys = {"REVERSI_SECRET_KEY": settings.SECRET_KEY}
    return {**db.env(), "REVERSI_DATA": str(folder / "data"), "PYTHONPATH": str(REPOSITORY), **keys}


def write_manifests(folder: Path, manifests: Sequence[Mapping[str, Any]]) -> Path:
    path = folder / "manifests.json"
    path.write_text(json.dumps(list(manifests)))
    return path


def hostile_upstream(*arguments: str) -> list[str]:
    """Return the flags for the server that misbehaves as its tools are named."""
    words = ["-m", HOSTILE, *arguments]
    return ["--upstream-cmd", sys.executable, *(each for word in words for each in ("--upstream-arg", word))]


@asynccontextmanager
async def through_gateway(
    *, env: Mapping[str, str], folder: Path, flags: Sequence[str], mode: str = "legacy", name: str = "agent"
) -> AsyncIterator[Client]:
    """Give the official client, connected to a gateway that was started with these flags."""
    command = ["-m", "reversi_site.gateway_cli", *flags]
    server = StdioServerParameters(command=sys.executable, args=command, env={**os.environ, **env}, cwd=folder)
    who = Implementation(name=name, version="1")
    with (folder / f"{name}.log").open("a") as log:
        async with Client(stdio_client(server, errlog=log), mode=mode, client_info=who, cache=None) as client:
            yield client
