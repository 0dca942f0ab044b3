"""The gateway's own tools through the official client: runs, plans, rollbacks and halts."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from django.conf import settings
from django.test import override_settings

from approvals.core.people import Caller, Limits, Role
from ledger.core.statuses import RunState, StepState
from ledger.queries import get_run, list_runs, list_steps
from reversi_sdk.errors import ToolError
from tests.approvals.factories import make_run
from tests.databases import Database
from tests.gateway.mcp.gateways import OWNER, Agent, Shop, agent_of, shop_agent, shop_gateway, text_of, write_manifests
from tests.gateway.mcp.wires import ERAS

BOOK = {"item": "book"}
PATIENCE_S = 20


@pytest.fixture(autouse=True)
def manifests(tmp_path: Path) -> Iterator[None]:
    path = write_manifests(tmp_path)
    with override_settings(CONFIGURATION=replace(settings.CONFIGURATION, manifests=(path,))):
        yield


def asked(tool: str, arguments: Mapping[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    async def main() -> dict[str, Any]:
        async with shop_agent(**fields) as agent:
            return await agent.call(tool, arguments)

    return anyio.run(main)


def error_code(answer: Mapping[str, Any]) -> str:
    assert answer["isError"] is True
    code: str = answer["structuredContent"]["error"]["code"]
    return code


def test_run_answers_the_one_that_calls_belong_to(db: Database) -> None:
    async def main() -> tuple[dict[str, Any], ...]:
        async with shop_agent() as agent:
            return (
                await agent.call("reversi.run", {"reason": "books for the shelf"}),
                await agent.call("shop.order", BOOK),
                await agent.call("reversi.run"),
            )

    opened, ordered, again = anyio.run(main)

    run = opened["structuredContent"]["run"]
    assert opened["structuredContent"] == {"run": run, "state": "open", "mode": "enforce", "steps": 0, "opened": True}
    assert ordered["_meta"]["reversi/step"] == {"run": run, "step": 0}
    assert again["structuredContent"] == {"run": run, "state": "open", "mode": "enforce", "steps": 1, "opened": False}
    assert get_run(run).reason == "books for the shelf"
    assert run in text_of(again)


def test_run_opens_a_fresh_one_for_this_connection_alone(sqlite_db: Database) -> None:
    async def main() -> tuple[str, ...]:
        async with shop_gateway(shop=Shop()) as gateway, agent_of(gateway) as agent:
            first = await agent.call("reversi.run")
            fresh = await agent.call("reversi.run", {"new": True})
            ordered = await agent.call("shop.order", BOOK)
            closed = await agent.call("reversi.run", {"close": True})
            after = await agent.call("reversi.run")
        return (
            first["structuredContent"]["run"],
            fresh["structuredContent"]["run"],
            ordered["_meta"]["reversi/step"]["run"],
            closed["structuredContent"]["run"],
            after["structuredContent"]["run"],
        )

    first, fresh, ordered, closed, after = anyio.run(main)

    assert first != fresh == ordered == closed
    assert get_run(fresh).state is RunState.CLOSED
    assert after == first


def test_run_that_is_closed_by_its_id_leaves_the_connection_its_own(sqlite_db: Database) -> None:
    async def main() -> tuple[dict[str, Any], ...]:
        async with shop_agent() as agent:
            await agent.call("reversi.run", {"id": "run_other"})
            mine = await agent.call("reversi.run", {"id": "run_mine"})
            closed = await agent.call("reversi.run", {"id": "run_other", "close": True})
            return mine, closed, await agent.call("reversi.run")

    mine, closed, after = anyio.run(main)

    assert (closed["structuredContent"]["run"], closed["structuredContent"]["state"]) == ("run_other", "closed")
    assert after["structuredContent"]["run"] == mine["structuredContent"]["run"] == "run_mine"


def test_handle_that_was_forgotten_means_the_clients_current_run(
    sqlite_db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.mcp.client_runs.MOST_HANDLES", 0)

    async def main() -> tuple[dict[str, Any], ...]:
        async with shop_agent() as agent:
            return await agent.call("reversi.run", {"new": True}), await agent.call("shop.order", BOOK)

    fresh, ordered = anyio.run(main)

    assert ordered["_meta"]["reversi/step"]["run"] != fresh["structuredContent"]["run"]


FIXED: dict[str, tuple[dict[str, Any], str | None]] = {
    "its own": ({"id": "run_outside"}, None),
    "another": ({"id": "run_other"}, "run_fixed"),
    "a new one": ({"new": True}, "run_fixed"),
}


@pytest.mark.parametrize("case", FIXED)
def test_run_that_is_named_from_outside_stays(sqlite_db: Database, case: str) -> None:
    arguments, code = FIXED[case]

    answer = asked("reversi.run", arguments, run_id="run_outside")

    if code is None:
        assert answer["structuredContent"]["run"] == "run_outside"
    else:
        assert error_code(answer) == code
        assert "Go on without naming a run" in text_of(answer)


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "no id": ("reversi.run", {"id": "no id"}, "bad_run_id"),
    "both": ("reversi.run", {"id": "run_1", "new": True}, "run_request_invalid"),
    "foreign": ("reversi.run", {"id": "run_foreign"}, "foreign_run"),
    "judged less": ("reversi.run", {"id": "run_loose"}, "wider_than_key"),
    "not a flag": ("reversi.run", {"new": "yes"}, "invalid_arguments"),
    "more": ("reversi.run", {"more": 1}, "invalid_arguments"),
    "nobody's plan": ("reversi.plan_rollback", {"run": "run_none"}, "run_not_found"),
    "a foreign plan": ("reversi.plan_rollback", {"run": "run_foreign"}, "foreign_run"),
    "two selections": ("reversi.plan_rollback", {"steps": [1], "to_step": 0}, "selection_invalid"),
    "a step that is not there": ("reversi.plan_rollback", {"run": "run_own", "steps": [7]}, "selection_invalid"),
    "a plan of nothing": ("reversi.plan_rollback", {}, "no_run"),
    "the end of nothing": ("reversi.run", {"close": True}, "no_run"),
    "the end of a foreign run": ("reversi.run", {"id": "run_foreign", "close": True}, "foreign_run"),
    "for operators": ("reversi.halt", {"reason": "stop"}, "unknown_tool"),
    "no tool": ("reversi.rnu", {}, "unknown_tool"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_own_tool_refuses_in_words(sqlite_db: Database, case: str) -> None:
    tool, arguments, code = REFUSED[case]
    make_run(run_id="run_own", principal=OWNER)
    make_run(run_id="run_loose", principal=OWNER, mode="observe")
    make_run(run_id="run_foreign", principal="somebody")

    assert error_code(asked(tool, arguments)) == code
    open_runs = [run.id for run in list_runs() if run.state is RunState.OPEN]
    assert sorted(open_runs) == ["run_foreign", "run_loose", "run_own"]


@pytest.mark.parametrize("era", ERAS)
def test_plan_shows_what_a_rollback_would_do(db: Database, era: str) -> None:
    async def main() -> dict[str, Any]:
        async with shop_agent(era=era) as agent:
            await agent.call("shop.order", BOOK)
            return await agent.call("reversi.plan_rollback")

    plan = anyio.run(main)

    (action,) = plan["structuredContent"]["actions"]
    assert (action["step"], action["compensation_tool"]) == (0, "shop.cancel")
    assert plan["structuredContent"]["fully_reversible"] is True
    assert "step 0  shop.order" in text_of(plan)


def test_operator_plans_the_run_of_somebody_else(sqlite_db: Database) -> None:
    make_run(run_id="run_foreign", principal="somebody")

    plan = asked("reversi.plan_rollback", {"run": "run_foreign"}, is_operator=True)

    assert plan["structuredContent"]["run_id"] == "run_foreign"


async def order_and_undo(agent: Agent, **arguments: Any) -> dict[str, Any]:
    await agent.call("shop.order", BOOK)
    return await agent.call("reversi.execute_rollback", {"confirm": True, **arguments})


@pytest.mark.parametrize("era", ERAS)
def test_rollback_undoes_over_the_gateways_own_session(db: Database, era: str) -> None:
    shop = Shop()

    async def main() -> dict[str, Any]:
        async with shop_agent(shop=shop, era=era, is_operator=True) as agent:
            with anyio.fail_after(PATIENCE_S):
                return await order_and_undo(agent)

    answer = anyio.run(main)

    body = answer["structuredContent"]
    assert (body["state"], body["report"]["complete"], answer["isError"]) == ("done", True, False)
    assert body["job"].startswith("job_")
    assert [tool for tool, _, _ in shop.calls] == ["shop.order", "shop.cancel", "shop.get"]
    ((_, arguments, meta),) = [call for call in shop.calls if call[0] == "shop.cancel"]
    assert (arguments, len(meta["idempotency_key"]), shop.orders) == ({"id": "o1"}, 64, {})
    assert [step.state for step in list_steps(body["run_id"])] == [StepState.COMPENSATED]
    assert "rollback COMPLETE" in text_of(answer)


def test_rollback_without_confirmation_shows_the_plan_and_does_nothing(sqlite_db: Database) -> None:
    shop = Shop()

    async def main() -> tuple[dict[str, Any], dict[str, Any]]:
        async with shop_agent(shop=shop, is_operator=True) as agent:
            shown = await order_and_undo(agent, confirm=False)
            digest = shown["structuredContent"]["digest"]
            with anyio.fail_after(PATIENCE_S):
                done = await agent.call("reversi.execute_rollback", {"confirm": True, "digest": digest})
            return shown, done

    shown, done = anyio.run(main)

    assert shown["structuredContent"]["confirm"] is False
    assert f'"digest": "{shown["structuredContent"]["digest"]}"' in text_of(shown)
    assert done["structuredContent"]["report"]["complete"] is True


def test_rollback_of_a_plan_that_changed_is_refused(sqlite_db: Database) -> None:
    async def main() -> dict[str, Any]:
        async with shop_agent(is_operator=True) as agent:
            with anyio.fail_after(PATIENCE_S):
                return await order_and_undo(agent, digest="0" * 64)

    assert error_code(anyio.run(main)) == "plan_stale"


def test_rollback_that_is_incomplete_reports_what_is_left(sqlite_db: Database) -> None:
    shop = Shop(behaviours={"shop.cancel": lambda _: ToolError("sold")})

    async def main() -> dict[str, Any]:
        async with shop_agent(shop=shop, is_operator=True) as agent:
            with anyio.fail_after(PATIENCE_S):
                return await order_and_undo(agent, retries=1)

    answer = anyio.run(main)

    report = answer["structuredContent"]["report"]
    assert (report["complete"], answer["isError"]) == (False, False)
    assert "rollback INCOMPLETE" in text_of(answer)


def test_rollback_is_tried_three_times(sqlite_db: Database) -> None:
    refusals = iter([ToolError("busy"), ToolError("busy")])
    shop = Shop()
    shop.behaviours["shop.cancel"] = lambda arguments: next(refusals, None) or shop.cancel(arguments)

    async def main() -> dict[str, Any]:
        async with shop_agent(shop=shop, is_operator=True) as agent:
            with anyio.fail_after(PATIENCE_S):
                return await order_and_undo(agent)

    anyio.run(main)

    assert [tool for tool, _, _ in shop.calls].count("shop.cancel") == 3


def test_rollback_that_takes_long_is_answered_and_reported_to_who_asks_again(sqlite_db: Database) -> None:
    shop = Shop(held="shop.cancel")
    confirmed = {"confirm": True}

    async def main() -> tuple[dict[str, Any], ...]:
        async with shop_agent(shop=shop, is_operator=True, gateway={"answers_after_s": 0.0}) as agent:
            running = await order_and_undo(agent)
            with anyio.fail_after(PATIENCE_S):
                await shop.reached.wait()
            again = await agent.call("reversi.execute_rollback", confirmed)
            shop.let_go.set()
            with anyio.fail_after(PATIENCE_S):
                while (last := await agent.call("reversi.execute_rollback", confirmed))["structuredContent"][
                    "state"
                ] == "running":
                    await anyio.lowlevel.checkpoint()
            return running, again, last

    running, again, last = anyio.run(main)

    assert running["structuredContent"]["state"] == again["structuredContent"]["state"] == "running"
    assert again["structuredContent"]["job"] == last["structuredContent"]["job"]
    assert last["structuredContent"]["report"]["complete"] is True
    assert [tool for tool, _, _ in shop.calls].count("shop.cancel") == 1


def test_rollback_of_a_run_that_was_closed_asks_which_is_meant(sqlite_db: Database) -> None:
    shop = Shop()

    async def main() -> tuple[dict[str, Any], ...]:
        async with shop_agent(shop=shop, is_operator=True) as agent:
            await agent.call("shop.order", BOOK)
            closed = await agent.call("reversi.run", {"close": True})
            plan = await agent.call("reversi.plan_rollback")
            return closed, plan, await agent.call("reversi.execute_rollback", {"confirm": True})

    closed, *answers = anyio.run(main)

    run = closed["structuredContent"]["run"]
    assert [error_code(answer) for answer in answers] == ["no_run", "no_run"]
    assert all(f"its last one was {run}, with 1 steps" in text_of(answer) for answer in answers)
    assert shop.orders == {"o1": "book"}
    assert [each.id for each in list_runs()] == [run]


def test_rollback_whose_end_nobody_heard_is_not_told_of_what_came_after(db: Database) -> None:
    shop = Shop(held="shop.cancel")

    async def main() -> dict[str, Any]:
        with anyio.fail_after(PATIENCE_S):
            async with (
                shop_gateway(shop=shop, answers_after_s=0.0) as gateway,
                agent_of(gateway, is_operator=True) as agent,
            ):
                run_id = (await order_and_undo(agent))["structuredContent"]["run_id"]
                await shop.reached.wait()
                shop.let_go.set()
                while (await gateway.journal.run(get_run, run_id)).is_rolling_back:
                    await anyio.lowlevel.checkpoint()
                await agent.call("shop.order", BOOK)
                while (last := await agent.call("reversi.execute_rollback", {"confirm": True}))["structuredContent"][
                    "state"
                ] == "running":
                    await anyio.lowlevel.checkpoint()
                return last

    last = anyio.run(main)

    assert last["structuredContent"]["report"]["compensated"] == [0, 1]
    assert shop.orders == {}


def test_rollback_with_other_options_does_not_join_the_one_that_goes_on(sqlite_db: Database) -> None:
    shop = Shop(held="shop.cancel")

    async def main() -> dict[str, Any]:
        with anyio.fail_after(PATIENCE_S):
            async with shop_agent(shop=shop, is_operator=True, gateway={"answers_after_s": 0.0}) as agent:
                await agent.call("shop.order", BOOK)
                await order_and_undo(agent, steps=[0])
                await shop.reached.wait()
                other = await agent.call("reversi.execute_rollback", {"confirm": True})
                shop.let_go.set()
                return other

    assert error_code(anyio.run(main)) == "rollback_running"


def test_rollback_tells_how_far_it_is(sqlite_db: Database) -> None:
    heard: list[tuple[float, float | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total))

    async def main() -> None:
        async with shop_agent(is_operator=True) as agent:
            for _ in range(2):
                await agent.call("shop.order", BOOK)
            with anyio.fail_after(PATIENCE_S):
                await agent.call("reversi.execute_rollback", {"confirm": True}, progress_callback=hear)

    anyio.run(main)

    assert (2, 2) in heard


def test_gateway_that_ends_lets_a_rollback_come_to_the_end_of_its_step(sqlite_db: Database) -> None:
    shop = Shop(held="shop.cancel")

    async def abandoned(agent: Agent) -> None:
        with pytest.raises(Exception, match="closed"):
            await agent.call("reversi.execute_rollback", {"confirm": True})

    async def let_go(shop: Shop) -> None:
        await shop.reached.wait()
        shop.let_go.set()

    async def main() -> str:
        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as tasks, shop_gateway(shop=shop) as gateway:
                async with agent_of(gateway, is_operator=True) as agent:
                    for _ in range(2):
                        ordered = await agent.call("shop.order", BOOK)
                    tasks.start_soon(abandoned, agent)
                    await shop.reached.wait()
                tasks.start_soon(let_go, shop)
        run: str = ordered["_meta"]["reversi/step"]["run"]
        return run

    run = anyio.run(main)

    assert [step.state for step in list_steps(run)] == [StepState.SUCCEEDED, StepState.COMPENSATED]
    assert get_run(run).is_rolling_back is False


def test_halt_stops_new_calls_until_it_is_lifted(db: Database) -> None:
    async def main() -> tuple[dict[str, Any], ...]:
        async with shop_agent(is_operator=True) as agent:
            halted = await agent.call("reversi.halt", {"reason": "audit", "tool": "shop.*"})
            return (
                halted,
                await agent.call("shop.order", BOOK),
                await agent.call("reversi.resume", {"id": halted["structuredContent"]["id"]}),
                await agent.call("shop.order", BOOK),
            )

    halted, blocked, resumed, passed = anyio.run(main)

    assert (halted["structuredContent"]["in_flight"], halted["structuredContent"]["scope"]) == (0, {"tool": "shop.*"})
    assert blocked["structuredContent"]["violations"] == [{"code": "halted", "message": "kill switch: audit"}]
    assert (resumed["structuredContent"], passed.get("isError", False)) == ({"lifted": 1}, False)


def test_operator_without_the_right_to_call_sees_and_makes_none(sqlite_db: Database) -> None:
    operator = Caller("olga", frozenset({Role.OPERATOR.value}), Limits(), "abc")

    async def main() -> tuple[list[str], dict[str, Any], dict[str, Any]]:
        async with shop_agent(caller=operator, is_operator=True) as agent:
            names = [tool["name"] for tool in await agent.list_tools()]
            return names, await agent.call("shop.order", BOOK), await agent.call("reversi.resume")

    names, call, resumed = anyio.run(main)

    assert names == ["reversi.plan_rollback", "reversi.execute_rollback", "reversi.halt", "reversi.resume"]
    assert error_code(call) == error_code(resumed) == "permission_denied"


def test_agents_key_bounds_its_runs(sqlite_db: Database) -> None:
    agent_key = Caller("ada", frozenset({Role.AGENT.value}), Limits(scope=("shop:read",), actor="shelf"), "abc")

    async def main() -> tuple[dict[str, Any], dict[str, Any]]:
        async with shop_agent(caller=agent_key) as agent:
            return await agent.call("shop.order", BOOK), await agent.call("reversi.run")

    blocked, run = anyio.run(main)

    assert [each["code"] for each in blocked["structuredContent"]["violations"]] == ["permission"]
    found = get_run(run["structuredContent"]["run"])
    assert (found.principal, found.actor, found.scope) == ("ada", "shelf", ("shop:read",))
