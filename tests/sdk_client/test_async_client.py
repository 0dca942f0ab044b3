"""The same over an event loop, and what only there can happen: cancellation."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from reversi_sdk import ApprovalRequired, AsyncClient, AsyncRun, CallBlocked, Client, Patience, Run, ServerUnreachable
from tests.sdk_client.downstream import Shop
from tests.sdk_client.servers import Server

SCOPE = ("shop:*",)


def public(kind: type) -> dict[str, list[str]]:
    """The public methods of a class, with their parameters."""
    functions = inspect.getmembers(kind, lambda member: inspect.isfunction(member) or inspect.ismethod(member))
    return {name: list(inspect.signature(function).parameters) for name, function in functions if name[0] != "_"}


@pytest.mark.parametrize(("one", "other"), [(Client, AsyncClient), (Run, AsyncRun)])
def test_both_clients_offer_the_same(one: type, other: type) -> None:
    assert public(one) == public(other)


def test_a_run_over_the_loop_is_called_planned_and_undone(any_server: Server, keys: dict[str, str], shop: Shop) -> None:
    async def order(args: dict[str, Any], key: str | None) -> dict[str, Any]:
        await asyncio.sleep(0)
        return shop.order(args)

    async def read(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return shop.read(tool, arguments)

    async def work() -> tuple[Any, Any, Any]:
        async with (
            AsyncClient(any_server.url, api_key=keys["agent"]) as client,
            client.run(actor="buyer", scope=SCOPE, close=True) as run,
        ):
            made = await run.call("shop.reserve", {"item": "book"}, execute=order)
            await run.call("shop.rename", {"id": made["id"], "name": "x"}, execute=shop.rename, reader=read)
            with pytest.raises(CallBlocked):
                await run.call("shop.unknown", execute=order)
            with pytest.raises(ApprovalRequired):
                await run.call("shop.pay", execute=order, wait=0.1)
            plan = await run.plan()
            return plan, await run.rollback(compensate=shop.undo, verifier=read), await run.steps()

    plan, report, steps = asyncio.run(work())

    assert [action["kind"] for action in plan["actions"]] == ["compensate", "compensate"]
    assert (report["complete"], report["compensated"]) == (True, [0, 1])
    assert [step["read_back"] for step in steps] == ["verified", "not_declared"]


def test_calls_of_one_client_run_at_the_same_time(server: Server, keys: dict[str, str]) -> None:
    async def work() -> list[int]:
        both = asyncio.Barrier(2)

        async def order(args: dict[str, Any]) -> dict[str, str]:
            await asyncio.wait_for(both.wait(), timeout=30)
            return {"id": args["item"]}

        async with AsyncClient(server.url, api_key=keys["agent"]) as client:
            run = await client.run(scope=SCOPE)
            made = await asyncio.gather(
                *(run.perform("shop.order", {"item": item}, execute=order) for item in ("book", "lamp"))
            )
            return sorted(each.step for each in made)

    assert asyncio.run(work()) == [0, 1]


def test_a_cancelled_call_is_reported_as_uncertain(server: Server, keys: dict[str, str]) -> None:
    async def work() -> list[str]:
        started = asyncio.Event()

        async def hang(args: dict[str, Any]) -> None:
            started.set()
            await asyncio.Event().wait()

        async with AsyncClient(server.url, api_key=keys["agent"]) as client:
            run = await client.run(scope=SCOPE)
            calling = asyncio.ensure_future(run.call("shop.order", {"item": "book"}, execute=hang))
            await started.wait()
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
            return [step["state"] for step in await run.steps()]

    assert asyncio.run(work()) == ["uncertain"]


def test_a_cancellation_during_the_report_does_not_lose_it(server: Server, keys: dict[str, str]) -> None:
    async def work() -> list[str]:
        async with AsyncClient(server.url, api_key=keys["agent"]) as client:
            run = await client.run(scope=SCOPE)

            async def order(args: dict[str, Any]) -> dict[str, str]:
                # Takes effect at the next await, which is the report's.
                asyncio.get_running_loop().call_soon(calling.cancel)
                return {"id": "o1"}

            calling = asyncio.ensure_future(run.call("shop.order", {"item": "book"}, execute=order))
            with pytest.raises(asyncio.CancelledError):
                await calling
            return [step["state"] for step in await run.steps()]

    assert asyncio.run(work()) == ["succeeded"]


def test_an_unreachable_server_is_given_up() -> None:
    async def work() -> None:
        patience = Patience(ordinary_ms=200, important_ms=200)
        async with AsyncClient("http://127.0.0.1:9", api_key="rk_a_b", patience=patience) as client:
            await client.runs()

    with pytest.raises(ServerUnreachable, match="no answer after"):
        asyncio.run(work())
