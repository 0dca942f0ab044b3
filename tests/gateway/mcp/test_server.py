"""The gateway through the official client: what agents see, what they are answered, and what the journal then holds."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from django.conf import settings
from django.test import override_settings

from gateway.core.upstream_errors import UpstreamTimeout, UpstreamUnavailable
from ledger.core.statuses import StepState
from ledger.core.values import RunRecord, StepRecord
from ledger.queries import get_last_run, get_run, list_steps
from reversi_sdk.errors import ToolError
from tests.databases import Database
from tests.gateway.mcp.gateways import (
    OWNER,
    Shop,
    agent_of,
    shop_agent,
    shop_gateway,
    structured,
    text_of,
    write_manifests,
)
from tests.gateway.mcp.wires import ERAS

BOOK = {"item": "book"}


@pytest.fixture(autouse=True)
def manifests(tmp_path: Path) -> Iterator[None]:
    path = write_manifests(tmp_path)
    with override_settings(CONFIGURATION=replace(settings.CONFIGURATION, manifests=(path,))):
        yield


def called(tool: str, arguments: Mapping[str, Any], *, shop: Shop | None = None, **fields: Any) -> dict[str, Any]:
    """Make one call through a gateway that exists only for it."""

    async def main() -> dict[str, Any]:
        async with shop_agent(shop=shop, **fields) as agent:
            return await agent.call(tool, arguments)

    return anyio.run(main)


def last_steps() -> list[StepRecord]:
    return list(list_steps(get_last_run().id))


@pytest.mark.parametrize("era", ERAS)
def test_call_goes_through_the_gate_and_brings_the_tools_own_answer(db: Database, era: str) -> None:
    answer = called("shop.order", BOOK, era=era)

    run, (step,) = get_last_run(), last_steps()
    assert (answer["structuredContent"], answer.get("isError", False)) == ({"id": "o1"}, False)
    assert answer["_meta"]["reversi/step"] == {"run": run.id, "step": 0}
    assert (run.principal, run.actor, run.scope) == (OWNER, "tester", ("*",))
    assert (step.state, step.upstream, step.observed_by) == (StepState.SUCCEEDED, "shop", "gateway")


def test_call_reports_what_would_undo_it(sqlite_db: Database) -> None:
    effect = called("shop.order", BOOK)["_meta"]["effect"]

    assert (effect["class"], effect["operation"]) == ("reversible", "shop.order")
    assert effect["undo"] == {
        "kind": "inverse",
        "operation": "shop.cancel",
        "tool": "shop.cancel",
        "arguments": {"id": "o1"},
    }
    assert len(effect["idempotency_key"]) == 64


def test_call_replaces_what_an_upstream_says_of_its_effect(sqlite_db: Database) -> None:
    theirs = {**structured({"id": "o1"}), "_meta": {"effect": "none at all", "theirs/note": 1}, "more": [None]}

    answer = called("shop.order", BOOK, shop=Shop(behaviours={"shop.order": lambda _: theirs}))

    assert answer["_meta"]["effect"]["class"] == "reversible"
    assert (answer["_meta"]["theirs/note"], answer["more"]) == (1, [None])


@pytest.mark.parametrize("era", ERAS)
def test_refusal_passes_a_client_that_checks_what_tools_answer(sqlite_db: Database, era: str) -> None:
    shop = Shop()
    shop.tools = [{**tool, "outputSchema": {"type": "object", "required": ["id"]}} for tool in shop.tools]

    answer = called("shop.cancel", {"id": "o1"}, shop=shop, era=era)

    assert answer["structuredContent"]["decision"] == "blocked"


def test_call_sends_the_key_and_the_trace_and_nothing_else_of_the_callers(sqlite_db: Database) -> None:
    shop = Shop()

    async def main() -> dict[str, Any]:
        async with shop_agent(shop=shop) as agent:
            meta = {
                "idempotency_key": "mine-1",
                "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                "secret": 1,
            }
            return await agent.call("shop.order", BOOK, meta=meta)

    answer = anyio.run(main)

    ((_, _, meta),) = shop.calls
    assert meta.keys() == {"idempotency_key", "traceparent"}
    assert meta["idempotency_key"] == "mine-1" == answer["_meta"]["effect"]["idempotency_key"]


@pytest.mark.parametrize("stage", [True, "yes"])
def test_call_for_a_draft_is_refused_and_never_made_for_real(sqlite_db: Database, stage: Any) -> None:
    shop = Shop()

    async def main() -> dict[str, Any]:
        async with shop_agent(shop=shop) as agent:
            return await agent.call("shop.order", BOOK, meta={"stage": stage})

    answer = anyio.run(main)

    assert (answer["isError"], answer["structuredContent"]["error"]["code"]) == (True, "unsupported_operation")
    assert shop.calls == []


def test_call_of_a_tool_that_carries_no_key_sends_none(sqlite_db: Database) -> None:
    shop = Shop()

    called("shop.get", {"id": "o1"}, shop=shop)

    assert [meta["idempotency_key"] for _, _, meta in shop.calls] == [None]


def test_call_reads_the_state_before_through_the_upstream(sqlite_db: Database) -> None:
    shop = Shop()
    shop.orders["o1"] = "book"

    answer = called("shop.rename", {"id": "o1", "item": "lamp"}, shop=shop)

    assert [tool for tool, _, _ in shop.calls] == ["shop.get", "shop.rename", "shop.get"]
    assert answer["_meta"]["effect"]["undo"]["arguments"] == {"id": "o1", "item": "book"}


def test_list_shows_upstream_tools_but_those_only_for_undoing_and_ours(sqlite_db: Database) -> None:
    async def main() -> list[dict[str, Any]]:
        async with shop_agent() as agent:
            return await agent.list_tools()

    listed = anyio.run(main)

    assert [tool["name"] for tool in listed] == [
        "shop.get",
        "shop.order",
        "shop.charge",
        "shop.rename",
        "shop.unheard",
        "reversi.run",
        "reversi.plan_rollback",
    ]
    assert listed[0] == Shop().tools[0]


def test_list_shows_operators_what_is_theirs(sqlite_db: Database) -> None:
    async def main() -> list[dict[str, Any]]:
        async with shop_agent(is_operator=True) as agent:
            return await agent.list_tools()

    names = [tool["name"] for tool in anyio.run(main)]

    assert names[-3:] == ["reversi.execute_rollback", "reversi.halt", "reversi.resume"]


@pytest.mark.parametrize("era", ERAS)
def test_list_without_the_upstream_shows_ours(sqlite_db: Database, era: str) -> None:
    shop = Shop()
    shop.trouble = UpstreamUnavailable("shop", "exited with code 1")

    async def main() -> list[dict[str, Any]]:
        async with shop_agent(shop=shop, era=era) as agent:
            return await agent.list_tools()

    assert [tool["name"] for tool in anyio.run(main)] == ["reversi.run", "reversi.plan_rollback"]


def test_list_that_breaks_shows_ours(sqlite_db: Database) -> None:
    shop = Shop()
    shop.trouble = ZeroDivisionError("inside")

    async def main() -> list[dict[str, Any]]:
        async with shop_agent(shop=shop) as agent:
            return await agent.list_tools()

    assert [tool["name"] for tool in anyio.run(main)] == ["reversi.run", "reversi.plan_rollback"]


def test_call_whose_effect_cannot_be_reported_is_still_answered(sqlite_db: Database) -> None:
    def order(_: Mapping[str, Any]) -> dict[str, Any]:
        sqlite_db.raw().execute("ALTER TABLE rollback_attempt RENAME TO gone")
        return {"id": "o1"}

    answer = called("shop.order", BOOK, shop=Shop(behaviours={"shop.order": order}))

    assert (answer["structuredContent"], "effect" in answer["_meta"]) == ({"id": "o1"}, False)


def test_tool_of_a_connector_beside_a_server_is_nobodys(sqlite_db: Database) -> None:
    inside = Shop()
    inside.name, inside.tools = "inside", ({"name": "inside.write", "inputSchema": {"type": "object"}},)

    async def main() -> dict[str, Any]:
        async with shop_gateway(shop=Shop(), beside=[inside]) as gateway, agent_of(gateway) as agent:
            return await agent.call("inside.write")

    assert anyio.run(main)["structuredContent"]["error"]["code"] == "unknown_tool"


def test_unknown_tool_is_told_with_what_comes_near(sqlite_db: Database) -> None:
    async def main() -> dict[str, Any]:
        async with shop_agent() as agent:
            await agent.list_tools()
            return await agent.call("shop.oder", BOOK)

    answer = anyio.run(main)

    assert "Did you mean shop.order" in text_of(answer)
    assert answer["isError"] is True


def test_arguments_that_the_schema_does_not_take_are_told_and_nothing_is_journaled(sqlite_db: Database) -> None:
    shop = Shop()

    async def main() -> tuple[dict[str, Any], dict[str, Any]]:
        async with shop_agent(shop=shop) as agent:
            return await agent.call("shop.order", {"item": 7}), await agent.call("reversi.run")

    answer, run = anyio.run(main)

    assert answer["structuredContent"]["error"]["problems"] == [
        {"path": "item", "message": "7 is not of type 'string'"}
    ]
    assert (answer["isError"], run["structuredContent"]["steps"], shop.calls) == (True, 0, [])


@pytest.mark.parametrize("era", ERAS)
def test_blocked_call_names_every_violation(db: Database, era: str) -> None:
    shop = Shop()

    answer = called("shop.cancel", {"id": "o1"}, era=era, shop=shop, scope=("shop:read",))

    assert answer["structuredContent"] == {
        "decision": "blocked",
        "violations": [
            {"code": "compensation_only", "message": "shop.cancel is only for undoing"},
            {"code": "permission", "message": "permission shop:write is not in the run's scope"},
        ],
    }
    assert answer["isError"] is True
    assert "shop.cancel is only for undoing" in text_of(answer)
    assert answer["_meta"]["reversi/run"] == get_last_run().id
    assert (last_steps(), shop.calls) == ([], [])


@pytest.mark.parametrize("era", ERAS)
def test_waiting_call_says_where_to_ask_and_passes_once_approved(db: Database, era: str) -> None:
    from approvals.core.people import local_admin
    from approvals.core.requests import Decision
    from approvals.operations.approvals import cast_vote
    from reversi_site.kit.clock import SystemClock

    def approve(approval: str) -> None:
        cast_vote(
            approval_id=approval,
            voter=local_admin("local:boss"),
            decision=Decision.APPROVE,
            reason="",
            now=SystemClock().now(),
            via="cli",
        )

    async def main() -> tuple[dict[str, Any], dict[str, Any]]:
        async with (
            shop_gateway(shop=Shop(), console_url="http://127.0.0.1:8000") as gateway,
            agent_of(gateway, era=era) as agent,
        ):
            waiting = await agent.call("shop.charge", {"amount": 7})
            await gateway.journal.run(approve, waiting["structuredContent"]["approval"]["id"])
            return waiting, await agent.call("shop.charge", {"amount": 7})

    waiting, passed = anyio.run(main)

    approval = waiting["structuredContent"]["approval"]
    assert (waiting["structuredContent"]["decision"], approval["state"]) == ("approval_required", "pending")
    assert f"http://127.0.0.1:8000/approvals/{approval['id']}/" in text_of(waiting)
    assert waiting["_meta"]["reversi/run"] == approval["run_id"]
    assert passed["structuredContent"] == {"charged": 7}


FAILURES: dict[str, tuple[Callable[[], Any], str, StepState]] = {
    "not sent": (lambda: UpstreamUnavailable("shop", "exited with code 1"), "failed", StepState.FAILED),
    "refused": (lambda: ToolError("no"), "failed", StepState.FAILED),
    "late": (lambda: UpstreamTimeout("shop", 60_000), "uncertain", StepState.UNCERTAIN),
    "asks back": (
        lambda: {"content": [], "resultType": "input_required"},
        "uncertain",
        StepState.UNCERTAIN,
    ),
}


@pytest.mark.parametrize("case", FAILURES)
def test_call_without_a_result_says_whether_it_was_done(db: Database, case: str) -> None:
    ending, outcome, state = FAILURES[case]

    answer = called("shop.order", BOOK, shop=Shop(behaviours={"shop.order": lambda _: ending()}))

    (step,) = last_steps()
    assert (answer["structuredContent"]["outcome"], step.state) == (outcome, state)
    assert answer["structuredContent"]["step"]["step"] == 0
    assert answer["_meta"]["reversi/step"] == {"run": step.run_id, "step": 0}
    assert (answer["isError"], answer["_meta"]["effect"]["undo"]) == (True, None)
    assert ("Do not repeat it blindly" in text_of(answer)) is (state is StepState.UNCERTAIN)


REPORTED: dict[str, tuple[dict[str, Any], StepState]] = {
    "an error": ({}, StepState.FAILED),
    "that it does not know": ({"_meta": {"reversi/outcome": "uncertain"}}, StepState.UNCERTAIN),
}


@pytest.mark.parametrize("case", REPORTED)
def test_what_the_tool_itself_reports_is_passed_on(sqlite_db: Database, case: str) -> None:
    more, state = REPORTED[case]
    theirs = {"content": [{"type": "text", "text": "sold out"}], "isError": True, "theirs": None, **more}

    answer = called("shop.order", BOOK, shop=Shop(behaviours={"shop.order": lambda _: theirs}))

    (step,) = last_steps()
    assert (step.state, step.error) == (state, "sold out")
    assert {key: answer[key] for key in ("content", "isError", "theirs")} == {
        "content": theirs["content"],
        "isError": True,
        "theirs": None,
    }
    assert answer["_meta"]["reversi/step"] == {"run": step.run_id, "step": 0}


def test_upstream_that_went_down_is_journaled_as_failed(sqlite_db: Database) -> None:
    shop = Shop()

    async def main() -> dict[str, Any]:
        async with shop_agent(shop=shop) as agent:
            await agent.list_tools()
            shop.trouble = UpstreamUnavailable("shop", "was killed by signal 9")
            return await agent.call("shop.order", BOOK)

    answer = anyio.run(main)

    (step,) = last_steps()
    assert (step.state, step.upstream) == (StepState.FAILED, "shop")
    assert "nothing was sent: the upstream shop was killed by signal 9" in text_of(answer)


def test_upstream_that_never_answered_is_told_for_a_tool_nobody_knows(sqlite_db: Database) -> None:
    shop = Shop()
    shop.trouble = UpstreamUnavailable("shop", "exited with code 1")

    answer = called("shop.unheard", {}, shop=shop)

    assert answer["structuredContent"]["error"]["code"] == "upstream_unavailable"


def test_upstream_that_never_answered_fails_a_call_that_a_manifest_knows(sqlite_db: Database) -> None:
    shop = Shop()
    shop.trouble = UpstreamUnavailable("shop", "exited with code 1")

    answer = called("shop.order", BOOK, shop=shop)

    (step,) = last_steps()
    assert (step.state, step.upstream, answer["structuredContent"]["outcome"]) == (StepState.FAILED, "shop", "failed")


def test_observed_call_without_a_manifest_goes_on_and_is_noted(sqlite_db: Database) -> None:
    answer = called("shop.unheard", {}, mode="observe")

    assert answer["structuredContent"] == {"unheard": True}
    assert answer["_meta"]["reversi/violations"] == [{"code": "no_manifest", "message": "no manifest for shop.unheard"}]
    assert answer["_meta"]["effect"] == {
        "class": "irreversible",
        "operation": "shop.unheard",
        "idempotency_key": None,
        "undo": None,
        "deadline_ms": None,
        "lookup": None,
        "undo_unavailable": "no manifest: what the call did is unknown",
    }
    assert [step.state for step in last_steps()] == [StepState.SUCCEEDED]


def test_progress_of_the_upstream_reaches_the_client(sqlite_db: Database) -> None:
    shop = Shop(held="shop.order")
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))
        shop.let_go.set()

    async def main() -> None:
        async with shop_agent(shop=shop) as agent:
            with anyio.fail_after(20):
                await agent.call("shop.order", BOOK, progress_callback=hear)

    anyio.run(main)

    assert heard == [(1, 2, "half of it")]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("is_unsent", [False, True])
def test_call_that_its_client_gives_up_is_settled(db: Database, era: str, is_unsent: bool) -> None:
    shop = Shop(held="shop.order")
    shop.is_unsent = is_unsent

    async def main() -> None:
        async with shop_agent(shop=shop, era=era) as agent:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(agent.call, "shop.order", BOOK)
                await shop.reached.wait()
                tasks.cancel_scope.cancel()
            # The gateway still serves the client that gave up.
            await agent.list_tools()

    anyio.run(main)

    assert [step.state for step in last_steps()] == [StepState.FAILED if is_unsent else StepState.UNCERTAIN]


@pytest.mark.parametrize("era", ERAS)
def test_client_that_leaves_in_mid_call_leaves_its_step_settled(db: Database, era: str) -> None:
    shop = Shop(held="shop.order")

    async def main() -> None:
        async with anyio.create_task_group() as tasks, shop_agent(shop=shop, era=era) as agent:
            tasks.start_soon(_abandoned, agent)
            await shop.reached.wait()

    anyio.run(main)

    assert [step.state for step in last_steps()] == [StepState.UNCERTAIN]


async def _abandoned(agent: Any) -> None:
    with pytest.raises(Exception, match="closed"):
        await agent.call("shop.order", BOOK)


def test_calls_of_one_client_share_a_run_and_of_another_do_not(db: Database) -> None:
    async def main() -> list[str]:
        async with shop_gateway(shop=Shop()) as gateway:
            runs = []
            for name in ("one", "other", "one"):
                async with agent_of(gateway, name=name) as agent:
                    runs.append((await agent.call("shop.order", BOOK))["_meta"]["reversi/step"]["run"])
            return runs

    first, second, third = anyio.run(main)

    assert (first, get_run(first).actor) == (third, "one")
    assert (first != second, get_run(second).actor) == (True, "other")


NAMES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "outside": ({"run_id": "run_outside"}, {"reversi/run": "run_meta"}, "run_outside"),
    "meta": ({}, {"reversi/run": "run_meta"}, "run_meta"),
    "handle": ({}, {}, "run_handle"),
}


@pytest.mark.parametrize("case", NAMES)
def test_run_is_named_from_outside_then_in_meta_then_by_handle(sqlite_db: Database, case: str) -> None:
    visits, meta, expected = NAMES[case]

    async def main() -> dict[str, Any]:
        async with shop_agent(**visits) as agent:
            if not visits:
                await agent.call("reversi.run", {"id": "run_handle"})
            return await agent.call("shop.order", BOOK, meta=meta)

    assert anyio.run(main)["_meta"]["reversi/step"]["run"] == expected


def foreign_run() -> RunRecord:
    from tests.approvals.factories import make_run

    return make_run(run_id="run_foreign", principal="somebody")


WORDS: dict[str, tuple[dict[str, Any], str, str]] = {
    "no id": ({"reversi/run": "no id"}, "bad_run_id", "is no run id"),
    "foreign": ({"reversi/run": "run_foreign"}, "foreign_run", "belongs to another principal"),
    "bad key": ({"idempotency_key": "a b"}, "bad_call", "idempotency_key"),
    "no key": ({"idempotency_key": 7}, "bad_field", "idempotency_key"),
    "no name": ({"reversi/run": 7}, "bad_run_id", "is no run id"),
    "closed": ({"reversi/run": "run_closed"}, "run_closed", "where your run is fixed, ask your operator"),
}


@pytest.mark.parametrize("case", WORDS)
def test_refusal_is_told_in_words(sqlite_db: Database, case: str) -> None:
    meta, code, words = WORDS[case]
    foreign_run()

    async def main() -> dict[str, Any]:
        async with shop_agent() as agent:
            await agent.call("reversi.run", {"id": "run_closed"})
            await agent.call("reversi.run", {"close": True})
            return await agent.call("shop.order", BOOK, meta=meta)

    answer = anyio.run(main)

    assert (answer["structuredContent"]["error"]["code"], answer["isError"]) == (code, True)
    assert words in text_of(answer)


def test_store_that_fails_is_told_and_not_with_its_insides(sqlite_db: Database) -> None:
    async def main() -> dict[str, Any]:
        async with shop_agent() as agent:
            sqlite_db.raw().execute("DROP TABLE ledger_run")
            return await agent.call("shop.order", BOOK)

    answer = anyio.run(main)

    assert answer["structuredContent"]["error"]["code"] == "ledger_unavailable"
    assert "ledger_run" not in text_of(answer)


def test_whatever_breaks_inside_is_told_in_words(sqlite_db: Database) -> None:
    shop = Shop()
    shop.tools = ({"name": "shop.order", "inputSchema": {"type": "object"}},)
    shop.trouble = ZeroDivisionError("inside")

    answer = called("shop.order", BOOK, shop=shop)

    assert answer["structuredContent"]["error"]["code"] == "internal_error"
    assert "inside" not in str(answer["structuredContent"]["error"]["message"]).replace("inside the gateway", "")
