"""The gateway over HTTP, through the official client: who may come in, and what becomes of who leaves."""

import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from django.conf import settings
from django.http.request import validate_host
from django.test import override_settings
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation

from approvals.core.people import Role
from approvals.operations.keys import create_key, revoke_key
from approvals.operations.people import ensure_user
from gateway.mcp.http import BODY_LIMIT, http_app, serve_http
from ledger.core.statuses import StepState
from ledger.queries import get_run, list_steps
from reversi_site.kit.clock import SystemClock
from tests.databases import Database
from tests.gateway.mcp.gateways import Shop, shop_gateway, text_of, write_manifests
from tests.gateway.mcp.wires import ERAS

BOOK = {"item": "book"}
NAMES = ["localhost", "127.0.0.1", "undo.example.org"]
PATIENCE_S = 30
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
}
ACCEPT = {"accept": "application/json, text/event-stream"}


@pytest.fixture(autouse=True)
def manifests(tmp_path: Path) -> Iterator[None]:
    path = write_manifests(tmp_path)
    with override_settings(CONFIGURATION=replace(settings.CONFIGURATION, manifests=(path,))):
        yield


def key_of(name: str, *roles: Role, **fields: Any) -> str:
    """Make a person with a key; fields narrow the key."""
    now = SystemClock().now()
    ensure_user(username=name, roles=[role.value for role in roles], actor="tests", now=now)
    _, token = create_key(owner=name, actor="tests", now=now, **fields)
    return token


@dataclass(frozen=True, slots=True)
class Served:
    """A gateway that listens."""

    url: str
    stopping: anyio.Event

    @asynccontextmanager
    async def client(
        self, token: str, *, era: str = "2026", door: str = "/mcp", **headers: str
    ) -> AsyncIterator[Client]:
        sent = {"authorization": f"Bearer {token}", **headers}
        async with httpx2.AsyncClient(headers=sent, timeout=PATIENCE_S) as http:
            transport = streamable_http_client(self.url + door, http_client=http)
            info = Implementation(name="tester", version="1")
            async with Client(transport, mode=ERAS[era], cache=None, client_info=info) as client:
                yield client

    async def post(self, body: Any, *, door: str = "/mcp", **headers: str) -> httpx2.Response:
        async with httpx2.AsyncClient(timeout=PATIENCE_S) as http:
            sent = {**ACCEPT, **{name.replace("_", "-"): value for name, value in headers.items()}}
            return await http.post(self.url + door, json=body, headers=sent)


@asynccontextmanager
async def served(*, shop: Shop | None = None) -> AsyncIterator[Served]:
    """Serve a shop's gateway on a port of its own until the block ends."""
    listening = socket.create_server(("127.0.0.1", 0))
    stopping, is_over = anyio.Event(), anyio.Event()

    async def serve() -> None:
        async with shop_gateway(shop=shop or Shop()) as gateway:
            app = http_app(gateway, answers_to=lambda name: validate_host(name, NAMES))
            await serve_http(app, listening=listening, stopping=stopping, grace_s=0)
        is_over.set()

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve)
            yield Served(f"http://127.0.0.1:{listening.getsockname()[1]}", stopping)
            stopping.set()
            await is_over.wait()


async def call(client: Client, tool: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
    result = await client.call_tool(tool, dict(arguments or {}))
    return result.model_dump(by_alias=True, mode="json")


@pytest.mark.parametrize("era", ERAS)
def test_agent_calls_within_its_key(db: Database, era: str) -> None:
    token = key_of("ada", Role.AGENT, scope=["shop:*"], fixed_actor="shelf")

    async def main() -> tuple[list[str], dict[str, Any]]:
        async with served() as gateway, gateway.client(token, era=era) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            return names, await call(client, "shop.order", BOOK)

    names, answer = anyio.run(main)

    run = get_run(answer["_meta"]["reversi/step"]["run"])
    assert names[-2:] == ["reversi.run", "reversi.plan_rollback"]
    assert answer["structuredContent"] == {"id": "o1"}
    assert (run.principal, run.actor, run.scope) == ("ada", "shelf", ("shop:*",))


@pytest.mark.parametrize("era", ERAS)
def test_operator_rolls_a_run_of_an_agent_back(db: Database, era: str) -> None:
    agent, operator = key_of("ada", Role.AGENT), key_of("olga", Role.OPERATOR)

    async def main() -> dict[str, Any]:
        async with served() as gateway:
            async with gateway.client(agent, era=era) as client:
                run = (await call(client, "shop.order", BOOK))["_meta"]["reversi/step"]["run"]
            async with gateway.client(operator, era=era, door="/mcp/operator") as client:
                return await call(client, "reversi.execute_rollback", {"run": run, "confirm": True})

    answer = anyio.run(main)

    assert answer["structuredContent"]["report"]["complete"] is True


def test_header_names_the_run(sqlite_db: Database) -> None:
    token = key_of("ada", Role.AGENT)

    async def main() -> dict[str, Any]:
        headers = {"Reversi-Run-Id": "run_header"}
        async with served() as gateway, gateway.client(token, **headers) as client:
            return await call(client, "shop.order", BOOK)

    assert anyio.run(main)["_meta"]["reversi/step"]["run"] == "run_header"


@pytest.mark.parametrize("name", ["a b", "-x", "a/b", "x" * 129, ""])
def test_header_that_can_name_no_run_is_refused(sqlite_db: Database, name: str) -> None:
    token = key_of("ada", Role.AGENT)

    async def main() -> httpx2.Response:
        async with served() as gateway:
            return await gateway.post(INITIALIZE, authorization=f"Bearer {token}", Reversi_Run_Id=name)

    answer = anyio.run(main)

    assert (answer.status_code, answer.json()["code"]) == (400, "bad_run_id")


@pytest.mark.parametrize("era", ERAS)
def test_handle_belongs_to_its_connection_and_key(sqlite_db: Database, era: str) -> None:
    tokens = key_of("ada", Role.AGENT), key_of("bob", Role.AGENT)

    async def main() -> list[str]:
        async with (
            served() as gateway,
            gateway.client(tokens[0], era=era) as first,
            gateway.client(tokens[1], era=era) as second,
        ):
            fresh = await call(first, "reversi.run", {"new": True})
            answers = [await call(client, "shop.order", BOOK) for client in (first, second)]
        return [fresh["structuredContent"]["run"], *(each["_meta"]["reversi/step"]["run"] for each in answers)]

    fresh, first, second = anyio.run(main)

    assert first == fresh != second


def test_handle_is_not_reached_by_the_name_of_anothers_session(sqlite_db: Database) -> None:
    tokens = key_of("ada", Role.AGENT), key_of("bob", Role.AGENT)
    session = {"mcp-session-id": "one-for-both"}

    async def main() -> dict[str, Any]:
        async with (
            served() as gateway,
            gateway.client(tokens[0], **session) as first,
            gateway.client(tokens[1], **session) as second,
        ):
            await call(second, "reversi.run", {"new": True})
            return await call(first, "shop.order", BOOK)

    assert anyio.run(main)["isError"] is False


UNKNOWN: dict[str, dict[str, str]] = {
    "no key": {},
    "no bearer": {"authorization": "Basic abc"},
    "nobody's": {"authorization": "Bearer rk_abc_def"},
    "two words": {"authorization": "Bearer a b"},
    "no token": {"authorization": "Bearer"},
}


@pytest.mark.parametrize("case", UNKNOWN)
@pytest.mark.parametrize("door", ["/mcp", "/mcp/operator"])
def test_request_without_a_valid_key_is_refused_in_words(sqlite_db: Database, case: str, door: str) -> None:
    async def main() -> httpx2.Response:
        async with served() as gateway:
            return await gateway.post(INITIALIZE, door=door, **UNKNOWN[case])

    answer = anyio.run(main)

    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Bearer realm="reversi"')
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "auth_required"


ROLES: dict[str, tuple[Role, str]] = {
    "an agent at the operators' door": (Role.AGENT, "/mcp/operator"),
    "an operator at the agents' door": (Role.OPERATOR, "/mcp"),
    "an auditor": (Role.AUDITOR, "/mcp"),
}


@pytest.mark.parametrize("case", ROLES)
def test_key_opens_only_its_door(sqlite_db: Database, case: str) -> None:
    role, door = ROLES[case]
    token = key_of("ada", role)

    async def main() -> httpx2.Response:
        async with served() as gateway:
            return await gateway.post(INITIALIZE, door=door, authorization=f"Bearer {token}")

    answer = anyio.run(main)

    assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")


def test_session_serves_only_the_key_that_opened_it(sqlite_db: Database) -> None:
    ada, bob = key_of("ada", Role.AGENT), key_of("bob", Role.AGENT)

    async def main() -> list[int]:
        async with served() as gateway:
            opened = await gateway.post(INITIALIZE, authorization=f"Bearer {ada}")
            session = opened.headers["mcp-session-id"]
            ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
            return [
                (await gateway.post(ping, authorization=f"Bearer {token}", mcp_session_id=session)).status_code
                for token in (ada, bob)
            ]

    assert anyio.run(main) == [200, 404]


def test_key_that_was_revoked_ends_its_session(sqlite_db: Database) -> None:
    token = key_of("ada", Role.AGENT)

    def revoke() -> None:
        revoke_key(prefix=token.split("_")[1], actor="tests", now=SystemClock().now())

    async def main() -> list[int]:
        async with served() as gateway:
            opened = await gateway.post(INITIALIZE, authorization=f"Bearer {token}")
            await anyio.to_thread.run_sync(revoke)
            ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
            session = opened.headers["mcp-session-id"]
            refused = await gateway.post(ping, authorization=f"Bearer {token}", mcp_session_id=session)
            return [opened.status_code, refused.status_code]

    assert anyio.run(main) == [200, 401]


HOSTS: dict[str, tuple[dict[str, str], int]] = {
    "the name of this machine": ({"host": "127.0.0.1:8001"}, 200),
    "a name that was configured": ({"host": "undo.example.org"}, 200),
    "a name of nobody here": ({"host": "evil.example.com"}, 421),
    "nonsense": ({"host": "[::"}, 421),
    "a page of ours": ({"origin": "https://undo.example.org"}, 200),
    "a page of somebody else": ({"origin": "https://evil.example.com"}, 403),
    "a page from nowhere": ({"origin": "null"}, 403),
}


@pytest.mark.parametrize("case", HOSTS)
def test_request_must_be_meant_for_this_gateway(sqlite_db: Database, case: str) -> None:
    headers, status = HOSTS[case]
    token = key_of("ada", Role.AGENT)

    async def main() -> httpx2.Response:
        async with served() as gateway:
            return await gateway.post(INITIALIZE, authorization=f"Bearer {token}", **headers)

    answer = anyio.run(main)

    assert answer.status_code == status
    assert (answer.headers["content-type"] == "application/problem+json") is (status != 200)


def test_health_needs_no_key_and_names_nobody(sqlite_db: Database) -> None:
    async def main() -> httpx2.Response:
        async with served() as gateway, httpx2.AsyncClient() as http:
            return await http.get(f"{gateway.url}/healthz", headers={"host": "10.0.0.7"})

    answer = anyio.run(main)

    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "upstreams": {"ready": 1, "down": 0}})


def test_body_that_is_too_long_is_refused(sqlite_db: Database) -> None:
    token = key_of("ada", Role.AGENT)

    async def main() -> int:
        async with served() as gateway:
            answer = await gateway.post({"x": "x" * BODY_LIMIT}, authorization=f"Bearer {token}")
            return answer.status_code

    assert anyio.run(main) == 413


def test_store_that_fails_is_told(sqlite_db: Database) -> None:
    token = key_of("ada", Role.AGENT)

    async def main() -> httpx2.Response:
        async with served() as gateway:
            sqlite_db.raw().execute("ALTER TABLE approvals_apikey RENAME TO gone")
            return await gateway.post(INITIALIZE, authorization=f"Bearer {token}")

    answer = anyio.run(main)

    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert "apikey" not in answer.text


@pytest.mark.parametrize("era", ERAS)
def test_client_that_gives_up_leaves_its_step_settled(db: Database, era: str) -> None:
    token, shop = key_of("ada", Role.AGENT), Shop(held="shop.order")

    async def main() -> dict[str, Any]:
        async with served(shop=shop) as gateway, gateway.client(token, era=era) as client:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call, client, "shop.order", BOOK)
                await shop.reached.wait()
                tasks.cancel_scope.cancel()
            return await call(client, "reversi.run")

    run = anyio.run(main)["structuredContent"]["run"]

    assert [step.state for step in list_steps(run)] == [StepState.UNCERTAIN]


@pytest.mark.parametrize("era", ERAS)
def test_gateway_that_ends_leaves_calls_settled(sqlite_db: Database, era: str) -> None:
    token, shop = key_of("ada", Role.AGENT), Shop(held="shop.order")

    async def main() -> str:
        async with served(shop=shop) as gateway, gateway.client(token, era=era) as client:
            run: str = (await call(client, "reversi.run"))["structuredContent"]["run"]
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call_in_vain, client)
                await shop.reached.wait()
                gateway.stopping.set()
        return run

    run = anyio.run(main)

    assert [step.state for step in list_steps(run)] == [StepState.UNCERTAIN]


async def call_in_vain(client: Client) -> None:
    with pytest.raises(Exception, match=r"."):
        await call(client, "shop.order", BOOK)


@pytest.mark.parametrize("era", ERAS)
def test_progress_and_refusals_travel_over_http(sqlite_db: Database, era: str) -> None:
    token, shop = key_of("ada", Role.AGENT, scope=["shop:read"]), Shop(held="shop.get")
    heard: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)
        shop.let_go.set()

    async def main() -> dict[str, Any]:
        async with served(shop=shop) as gateway, gateway.client(token, era=era) as client:
            await client.call_tool("shop.get", {"id": "o1"}, progress_callback=hear)
            return await call(client, "shop.order", BOOK)

    answer = anyio.run(main)

    assert (heard, answer["isError"]) == ([1], True)
    assert "permission shop:write is not in the run's scope" in text_of(answer)
