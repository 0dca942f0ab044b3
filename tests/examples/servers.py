"""The official servers as tools that calls and undos reach: one real process each, talked to by the official client."""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TextIO

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from connectors.catalog import fs
from connectors.core.connector import Connector
from gateway.core.results import value_of
from gateway.core.upstream_errors import raise_if_error
from reversi_sdk.errors import EffectUncertainError, ToolError
from reversi_site.kit.transactions import require_no_transaction
from rollback.core.ports import Answer, ReadFailed, Tools, UndoAnswer, UndoCall, UndoFailed, Undone, UndoUnknown
from tests.examples.graphs import write_graph
from tests.examples.sessions import FIRST_ENTITIES, FIRST_RELATIONS, furnish
from tests.npm_servers import filesystem_server, memory_server


class ServerProcess:
    """A running server."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal, self._client = portal, client

    def list_tools(self) -> Mapping[str, dict[str, Any]]:
        """Return what the server offers, by name."""
        listed = self._portal.call(self._client.list_tools)
        return {tool.name: tool.model_dump(by_alias=True, exclude_none=True) for tool in listed.tools}

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Return the tool's value; raises ToolReported with the text of an error."""
        require_no_transaction()
        result = self._portal.call(self._client.call_tool, tool, dict(arguments))
        answer = result.model_dump(by_alias=True, exclude_none=True)
        raise_if_error(answer)
        return value_of(answer)


@contextmanager
def _running(command: list[str], *, cwd: Path, log: TextIO, **environment: str) -> Iterator[ServerProcess]:
    parameters = StdioServerParameters(command=command[0], args=command[1:], env=environment, cwd=cwd)
    client = Client(stdio_client(parameters, errlog=log), mode="legacy")
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client) as connected:
        yield ServerProcess(portal, connected)


@dataclass
class Lost:
    """Requests to the server whose answer gets lost: None passes, else whether the effect happened before."""

    plan: deque[bool | None] = field(default_factory=deque)

    def take(self) -> bool | None:
        return self.plan.popleft() if self.plan else None


@dataclass
class World:
    """A server and, unless switched off, the connector that undoes beside it: the executor and reader of rollbacks.

    `example` names the folder of its manifests.
    """

    example: ClassVar[str]
    server: ServerProcess
    connector: Connector | None = None
    lost: Lost = field(default_factory=Lost)
    failing_reads: str | None = None

    @property
    def tools(self) -> Tools:
        """What a rollback gets."""
        return Tools(self, self)

    def run(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Run a tool of the server or of the connector."""
        if not tool.startswith("fs."):
            return self.server.call(tool, arguments)
        if self.connector is None:
            raise ToolError(f"nothing can run {tool}")
        require_no_transaction()
        return self.connector.call(tool, arguments)

    def can_run(self, tool: str) -> bool:
        return self.connector is not None or not tool.startswith("fs.")

    def honours_key(self, tool: str) -> bool:
        return False

    def compensate(self, call: UndoCall) -> UndoAnswer:
        is_lost_after = self.lost.take()
        if is_lost_after is False:
            return UndoUnknown("the connection was lost")
        try:
            self.run(call.tool, call.args)
        except EffectUncertainError as error:
            return UndoUnknown(str(error))
        except ToolError as error:
            return UndoFailed(str(error))
        return Undone() if is_lost_after is None else UndoUnknown("the connection was lost")

    def can_read(self, tool: str) -> bool:
        return self.can_run(tool)

    def look(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Make a read that a manifest declares, or fail it as planned."""
        if self.failing_reads is not None:
            raise ToolError(self.failing_reads)
        return self.run(tool, arguments)

    def read(self, tool: str, arguments: Mapping[str, Any], *, timeout_ms: int) -> Answer | ReadFailed:
        try:
            return Answer(self.look(tool, arguments))
        except ToolError as error:
            return ReadFailed(str(error))

    def start_anew(self) -> None:
        """Forget what a test planned."""
        self.lost.plan.clear()
        self.failing_reads = None


@dataclass
class Files(World):
    """The file server on a folder, with the backups beside it."""

    example = "filesystem"
    root: Path = Path()

    def start_anew(self) -> None:
        """Lay out the folder as at the beginning, with no backups."""
        World.start_anew(self)
        backups = self.root.parent / "backups"
        shutil.rmtree(backups, ignore_errors=True)
        for path in self.root.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        furnish(self.root)
        self.connector = fs.build(self.root, backups)


@contextmanager
def files_world(folder: Path, *more: Path) -> Iterator[Files]:
    """Serve `folder/files`, and further folders where given."""
    root = folder / "files"
    root.mkdir()
    with (folder / "server.log").open("w") as log:
        command = filesystem_server(root, *more)
        with _running(command, cwd=folder, log=log, HOME=str(root)) as server:
            yield Files(server, root=root)


@dataclass
class Memory(World):
    """The memory server on one file."""

    example = "memory"
    path: Path = Path()

    def start_anew(self) -> None:
        """Write the graph as at the beginning."""
        World.start_anew(self)
        write_graph(self.path, FIRST_ENTITIES, FIRST_RELATIONS)


@contextmanager
def memory_world(folder: Path) -> Iterator[Memory]:
    """Serve the graph in `folder/memory.jsonl`."""
    path = folder / "memory.jsonl"
    with (folder / "server.log").open("w") as log:
        command = memory_server()
        with _running(command, cwd=folder, log=log, MEMORY_FILE_PATH=str(path)) as server:
            yield Memory(server, path=path)
