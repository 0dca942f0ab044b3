"""An agent's calls through a real server: what is announced, what runs, and what is then journaled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reversi_sdk import CallBlocked, Client, EffectUncertainError, Refusal, Run
from reversi_sdk.client.errors import Forbidden, NotSignedIn
from tests.sdk_client.downstream import Shop
from tests.sdk_client.servers import Server

SCOPE = ("shop:*", "mail:*")
Connect = Callable[..., Client]


@pytest.fixture
def run(any_server: Server, keys: dict[str, str], connect: Connect) -> Run:
    return connect(any_server.url, keys["agent"]).run(actor="buyer", scope=SCOPE, reason="tests")


@pytest.fixture
def one_run(server: Server, keys: dict[str, str], connect: Connect) -> Run:
    return connect(server.url, keys["agent"]).run(scope=SCOPE)


def states(run: Run) -> list[str]:
    return [step["state"] for step in run.steps()]


def test_a_call_is_intended_while_it_runs_and_succeeded_after(run: Run, shop: Shop) -> None:
    seen: list[list[str]] = []

    def order(args: dict[str, Any]) -> dict[str, Any]:
        seen.append(states(run))
        return shop.order(args)

    made = run.perform("shop.order", {"item": "book"}, execute=order, reason="wanted")

    assert (made.result, made.step, made.state, made.effect) == ({"id": "o0"}, 0, "succeeded", "compensable")
    assert seen == [["intended"]]
    assert states(run) == ["succeeded"]
    assert run.plan()["actions"][0]["args"] == {"id": "o0"}
    assert [event["kind"] for event in run.events()][:2] == ["opened", "intended"]


def test_an_execute_of_two_parameters_gets_the_key_to_send(one_run: Run) -> None:
    keys: list[str | None] = []

    def order(args: dict[str, Any], key: str | None) -> dict[str, str]:
        keys.append(key)
        return {"id": "o1"}

    made = one_run.perform("shop.order", {"item": "book"}, execute=order)

    assert keys == [made.idempotency_key]


ENDS: dict[str, tuple[Exception, str]] = {
    "the tool said no": (ValueError("out of stock"), "failed"),
    "nobody can say": (EffectUncertainError("502"), "uncertain"),
    "time-out": (TimeoutError("10 s"), "uncertain"),
    "lost connection": (ConnectionResetError("by peer"), "uncertain"),
}


def test_errors_are_journaled_and_raised_on(one_run: Run) -> None:
    for number, (error, state) in enumerate(ENDS.values()):

        def order(args: dict[str, Any], error: Exception = error) -> None:
            raise error

        with pytest.raises(type(error)) as raised:
            one_run.call("shop.order", {"item": f"book {number}"}, execute=order)

        assert raised.value is error
        assert error.__notes__ == [f"step {number} of run {one_run.id} is {state}"]
    assert states(one_run) == [state for _, state in ENDS.values()]
    assert "out of stock" in one_run.step(0)["error"]


def test_an_error_that_quotes_a_redacted_value_is_told_without_it(one_run: Run) -> None:
    def reserve(args: dict[str, Any]) -> None:
        raise ValueError(f"pin {args['pin']} of {args['item']} was refused")

    with pytest.raises(ValueError, match="pin 97531"):
        one_run.call("shop.reserve", {"item": "lamp", "pin": 97531}, execute=reserve)

    assert one_run.step(0)["error"] == "ValueError: pin [redacted] of lamp was refused"


def test_an_interruption_leaves_the_call_uncertain(one_run: Run) -> None:
    def order(args: dict[str, Any]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        one_run.call("shop.order", {"item": "book"}, execute=order)

    assert states(one_run) == ["uncertain"]


def test_a_blocked_call_runs_nothing(one_run: Run, shop: Shop) -> None:
    with pytest.raises(CallBlocked) as blocked:
        one_run.call("shop.unknown", {"item": "book"}, execute=shop.order)

    assert [violation["code"] for violation in blocked.value.violations] == ["no_manifest"]
    assert "no manifest for shop.unknown" in str(blocked.value)
    assert (shop.effects["order"], one_run.steps()) == (0, [])


def test_a_repeat_is_a_duplicate_and_runs_nothing(one_run: Run, shop: Shop) -> None:
    one_run.call("shop.order", {"item": "book"}, execute=shop.order)

    with pytest.raises(CallBlocked, match="duplicate of step 0"):
        one_run.call("shop.order", {"item": "book"}, execute=shop.order)

    assert shop.effects["order"] == 1


def test_the_state_before_is_read_by_the_reader_and_again_after(one_run: Run, shop: Shop) -> None:
    first = one_run.perform("shop.reserve", {"item": "book"}, execute=shop.order)
    reads: list[Any] = []

    def read(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        reads.append(shop.read(tool, arguments)["name"])
        return shop.read(tool, arguments)

    one_run.call("shop.rename", {"id": "o0", "name": "novel"}, execute=shop.rename, reader=read, depends_on=[first])

    assert reads == ["book", "novel"]
    assert one_run.plan()["actions"][0]["args"] == {"id": "o0", "name": "book"}
    assert one_run.step(1)["depends_on"] == [0]


def test_without_a_reader_a_call_that_needs_one_is_blocked(one_run: Run, shop: Shop) -> None:
    with pytest.raises(CallBlocked) as blocked:
        one_run.call("shop.rename", {"id": "o0", "name": "novel"}, execute=shop.rename)

    assert blocked.value.violations[0]["code"] == "before_failed"
    assert "nothing can run shop.get" in str(blocked.value)


def test_a_result_that_is_no_json_is_sent_as_far_as_it_goes(one_run: Run) -> None:
    answer = {"id": "o7", "handle": object(), "when": {1, 2}, "ratio": float("nan")}

    result = one_run.call("shop.order", {"item": "book"}, execute=lambda args: answer)

    assert result is answer
    assert one_run.plan()["actions"][0]["args"] == {"id": "o7"}


def test_arguments_that_a_tool_changes_stay_the_callers(one_run: Run) -> None:
    args = {"item": "book", "tags": ["a"]}

    def order(given: dict[str, Any]) -> dict[str, str]:
        given["tags"].append("b")
        return {"id": "o1"}

    one_run.call("shop.order", args, execute=order)

    assert args == {"item": "book", "tags": ["a"]}


def test_a_run_is_continued_by_its_id_and_not_closed_unasked(one_run: Run, server: Server, connect: Connect) -> None:
    with one_run:
        pass
    client = one_run._client

    with client.run(one_run.id, scope=SCOPE, close=True) as again:
        assert (again.id, again.refresh()["state"]) == (one_run.id, "open")

    assert one_run.refresh()["state"] == "closed"
    with pytest.raises(Refusal) as refused:
        one_run.call("mail.send", execute=lambda: None)
    assert refused.value.code == "run_closed"


def test_another_agents_run_is_closed_to_others(
    one_run: Run, server: Server, keys: dict[str, str], connect: Connect
) -> None:
    with pytest.raises(Forbidden, match="belongs to another principal"):
        connect(server.url, keys["stranger"]).existing_run(one_run.id)
    with pytest.raises(NotSignedIn) as refused:
        connect(server.url, "rk_wrong_key").runs()
    assert refused.value.code == "auth_required"


def test_lists_are_read_over_all_pages(one_run: Run) -> None:
    for number in range(60):
        one_run.call("shop.get", {"id": str(number)}, execute=lambda: None)

    assert [step["step"] for step in one_run.steps()] == list(range(60))
    assert [run["id"] for run in one_run._client.runs(limit=1)] == [one_run.id]
