"""The wire to the client that started the gateway: what comes, how it ends, and what is settled then."""

import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from django.conf import settings
from django.test import override_settings

from approvals.core.people import local_admin
from gateway.mcp.stdio import LINE_LIMIT, local_visits, serve_stdio
from ledger.core.statuses import StepState
from ledger.queries import get_last_run, list_steps
from tests.databases import Database
from tests.gateway.mcp.gateways import OWNER, Shop, shop_gateway, structured, write_manifests

PATIENCE_S = 20
INITIALIZE: dict[str, Any] = {
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
}


@pytest.fixture(autouse=True)
def manifests(tmp_path: Path) -> Iterator[None]:
    path = write_manifests(tmp_path)
    with override_settings(CONFIGURATION=replace(settings.CONFIGURATION, manifests=(path,))):
        yield


@dataclass(slots=True)
class Client:
    """The other end of two pipes; closes each of its ends once."""

    to_gateway: int
    from_gateway: int
    stopping: anyio.Event
    _rest: bytearray = field(default_factory=bytearray)
    _number: int = 0

    async def send(self, line: bytes) -> None:
        await anyio.to_thread.run_sync(os.write, self.to_gateway, line + b"\n")

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> int:
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params or {}}
        await self.send(json.dumps(message).encode())
        return self._number

    async def call(self, tool: str, arguments: dict[str, Any]) -> int:
        return await self.ask("tools/call", {"name": tool, "arguments": arguments})

    async def hear(self) -> dict[str, Any] | None:
        """Return the next message; None when the gateway says no more."""
        while b"\n" not in self._rest:
            chunk = await anyio.to_thread.run_sync(os.read, self.from_gateway, 65536)
            if not chunk:
                return None
            self._rest += chunk
        line, _, rest = bytes(self._rest).partition(b"\n")
        self._rest = bytearray(rest)
        message: dict[str, Any] = json.loads(line)
        return message

    async def greet(self) -> None:
        await self.ask(**INITIALIZE)
        await self.hear()
        await self.send(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')

    def leave(self) -> None:
        os.close(self.to_gateway)
        self.to_gateway = -1


@asynccontextmanager
async def stdio_client(*, shop: Shop) -> AsyncIterator[tuple[Client, anyio.Event]]:
    """Give a client of a gateway, and what is set when the gateway has stopped serving it."""
    incoming, to_gateway = os.pipe()
    from_gateway, outgoing = os.pipe()
    client, served = Client(to_gateway, from_gateway, anyio.Event()), anyio.Event()

    async def serve() -> None:
        visit_of = local_visits(caller=local_admin(OWNER), run_id=None, mode=None, scope=None, is_operator=False)
        async with shop_gateway(shop=shop) as gateway:
            server = gateway.server(visit_of)
            await serve_stdio(server, incoming=incoming, outgoing=outgoing, stopping=client.stopping)
        os.close(outgoing)
        served.set()

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve)
            await client.greet()
            yield client, served
            if not served.is_set():
                client.stopping.set()
                await served.wait()
    for descriptor in (incoming, client.to_gateway, client.from_gateway):
        if descriptor >= 0:
            os.close(descriptor)


def last_states() -> list[StepState]:
    return [step.state for step in list_steps(get_last_run().id)]


def test_wire_carries_messages_of_any_size(sqlite_db: Database) -> None:
    long = "ä" * 1_000_000
    shop = Shop(behaviours={"shop.order": lambda arguments: structured({"said": arguments["item"]})})

    async def main() -> dict[str, Any]:
        async with stdio_client(shop=shop) as (client, _):
            line = {"jsonrpc": "2.0", "id": 9, "method": "tools/call"}
            message = {**line, "params": {"name": "shop.order", "arguments": {"item": long}}}
            async with anyio.create_task_group() as tasks:
                # More than a pipe takes at once: somebody must read while it is written.
                tasks.start_soon(send_all, client, json.dumps(message).encode() + b"\n")
                answer = await client.hear()
            assert answer is not None
            return answer

    answer = anyio.run(main)

    assert (answer["id"], answer["result"]["structuredContent"]) == (9, {"said": long})


async def send_all(client: Client, data: bytes) -> None:
    rest = data
    while rest:
        rest = rest[await anyio.to_thread.run_sync(os.write, client.to_gateway, rest) :]


GARBAGE: dict[str, tuple[bytes, int | None]] = {
    "no json": (b"hello", None),
    "no message": (b'{"jsonrpc": "2.0"}', None),
    "no text": (b"\xff\xfe", None),
    "too deep": (b"[" * 100_000, None),
    "half a character": (rb'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "\ud800"}}', 7),
    "no number": (b'{"jsonrpc": "2.0", "id": true, "method": 1}', None),
}


@pytest.mark.parametrize("case", GARBAGE)
def test_line_that_is_no_message_is_answered_and_the_next_one_served(sqlite_db: Database, case: str) -> None:
    line, number = GARBAGE[case]

    async def main() -> tuple[Any, Any]:
        async with stdio_client(shop=Shop()) as (client, _):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(send_all, client, line + b"\n\n  \n")
                refused = await client.hear()
            await client.ask("tools/list")
            return refused, await client.hear()

    refused, listed = anyio.run(main)

    assert (refused["id"], refused["error"]["code"]) == (number, -32700)
    assert listed["result"]["tools"][0]["name"] == "shop.get"


def test_line_without_an_end_ends_the_session(sqlite_db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.mcp.stdio.LINE_LIMIT", 1000)
    assert LINE_LIMIT > 16 * 1024 * 1024

    async def main() -> Any:
        async with stdio_client(shop=Shop()) as (client, served):
            await send_all(client, b"x" * 5000)
            await served.wait()
            return await client.hear()

    assert anyio.run(main) is None


def test_client_that_closes_its_end_leaves_its_call_settled(db: Database) -> None:
    shop = Shop(held="shop.order")

    async def main() -> Any:
        async with stdio_client(shop=shop) as (client, served):
            await client.call("shop.order", {"item": "book"})
            await shop.reached.wait()
            client.leave()
            await served.wait()
            return await client.hear()

    last_words = anyio.run(main)

    assert last_words["error"]["message"] == "Connection closed"
    assert last_states() == [StepState.UNCERTAIN]


def test_signal_ends_the_serving_and_leaves_the_call_settled(sqlite_db: Database) -> None:
    shop = Shop(held="shop.order")

    async def main() -> None:
        async with stdio_client(shop=shop) as (client, served):
            await client.call("shop.order", {"item": "book"})
            await shop.reached.wait()
            client.stopping.set()
            await served.wait()

    anyio.run(main)

    assert last_states() == [StepState.UNCERTAIN]


def test_client_that_reads_no_more_ends_the_serving(sqlite_db: Database) -> None:
    async def main() -> None:
        async with stdio_client(shop=Shop()) as (client, served):
            os.close(client.from_gateway)
            client.from_gateway = -1
            await client.ask("tools/list")
            await served.wait()

    anyio.run(main)


def test_plain_files_serve_as_a_wire(sqlite_db: Database, tmp_path: Path) -> None:
    asked, answered = tmp_path / "asked", tmp_path / "answered"
    message = {"jsonrpc": "2.0", "id": 1, **INITIALIZE}
    asked.write_bytes(json.dumps(message).encode() + b"\n")

    async def main() -> None:
        visit_of = local_visits(caller=local_admin(OWNER), run_id=None, mode=None, scope=None, is_operator=False)
        with asked.open("rb") as incoming, answered.open("wb") as outgoing:
            async with shop_gateway(shop=Shop()) as gateway:
                await serve_stdio(
                    gateway.server(visit_of),
                    incoming=incoming.fileno(),
                    outgoing=outgoing.fileno(),
                    stopping=anyio.Event(),
                )

    anyio.run(main)

    assert [json.loads(line)["id"] for line in answered.read_text().splitlines()] == [1]
