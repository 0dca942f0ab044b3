"""Calls over HTTP: announced, blocked, sent to read first, completed."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.queries import list_events, list_steps
from tests.api.world import World, begin, open_run, succeed

OBSERVED = {"found": True, "value": {"name": "old", "found": True}}


def test_call_is_allowed_with_what_its_caller_needs(any_world: World) -> None:
    run_id = open_run(any_world.agent)

    answer = begin(any_world.agent, run_id)

    assert answer.status == 201
    assert answer.data == {
        "decision": "allowed",
        "step": 0,
        "state": "intended",
        "effect": "compensable",
        "idempotency_key": None,
        "timeout_ms": 900_000,
        "notes": [],
        "violations": [],
        "redacted": ["$args.pin"],
    }


def test_blocked_call_is_a_problem_with_every_violation(world: World) -> None:
    run_id = open_run(world.agent, scope=["shop:read"])
    world.operator.post("halt", {"reason": "looking into it"})

    answer = begin(world.agent, run_id)

    assert (answer.status, answer.headers["Content-Type"]) == (403, "application/problem+json")
    assert (answer.data["code"], answer.data["decision"]) == ("call_blocked", "blocked")
    assert [found["code"] for found in answer.data["violations"]] == ["halted", "permission"]
    assert list_events(run_id)[-1].kind == "blocked"


def test_call_that_needs_the_state_before_says_what_to_read(world: World) -> None:
    run_id = open_run(world.agent)

    first = begin(world.agent, run_id, tool="shop.rename", args={"id": "o1", "name": "new"})
    second = begin(world.agent, run_id, tool="shop.rename", args={"id": "o1", "name": "new"}, before=OBSERVED)

    assert (first.status, first.data["code"], first.data["decision"]) == (428, "before_required", "before_required")
    assert first.data["before"] == {"tool": "shop.get", "arguments": {"id": "o1"}}
    assert (second.status, second.data["step"]) == (201, 0)


@pytest.mark.parametrize(
    "before",
    [
        {},
        {"found": True},
        {"value": 1},
        {"found": True, "value": 1, "error": "x"},
        {"found": "yes", "value": 1},
        [],
        "x",
    ],
)
def test_observations_that_say_nothing_are_refused(world: World, before: Any) -> None:
    run_id = open_run(world.agent)

    answer = begin(world.agent, run_id, tool="shop.rename", args={"id": "o1"}, before=before)

    assert (answer.status, answer.data["code"]) == (400, "invalid_fields")
    assert answer.data["errors"][0]["field"].startswith("before")


def test_failed_read_before_blocks_the_call(world: World) -> None:
    run_id = open_run(world.agent)

    answer = begin(world.agent, run_id, tool="shop.rename", args={"id": "o1"}, before={"error": "timed out"})

    assert [found["code"] for found in answer.data["violations"]] == ["before_failed"]


def test_staging_is_refused_and_not_ignored(world: World) -> None:
    run_id = open_run(world.agent)

    answer = begin(world.agent, run_id, stage=True)

    assert (answer.status, list_steps(run_id)) == (400, [])


def test_success_is_answered_with_what_would_undo_it(any_world: World) -> None:
    run_id = open_run(any_world.agent)
    begin(any_world.agent, run_id)

    answer = any_world.agent.post(f"runs/{run_id}/steps/0/complete", {"status": "succeeded", "result": {"id": "o1"}})

    assert answer.status == 200
    assert answer.data == {
        "step": 0,
        "state": "succeeded",
        "effect": {
            "class": "compensable",
            "operation": "shop.order",
            "idempotency_key": None,
            "undo": {
                "kind": "compensate",
                "operation": "shop.cancel",
                "tool": "shop.cancel",
                "arguments": {"id": "o1"},
            },
            "deadline_ms": None,
            "lookup": None,
        },
    }


def test_success_without_what_the_undo_needs_is_unrecoverable(world: World) -> None:
    run_id = open_run(world.agent)
    begin(world.agent, run_id)

    answer = world.agent.post(f"runs/{run_id}/steps/0/complete", {"status": "succeeded", "result": {}})

    assert "$result.id" in answer.data["unrecoverable"]
    assert (answer.data["effect"]["undo"], answer.data["effect"]["undo_unavailable"]) == (
        None,
        answer.data["unrecoverable"],
    )


@pytest.mark.parametrize(
    ("tool", "report"),
    [
        ("shop.get", {"class": "read", "undo": None}),
        ("shop.tag", {"class": "irreversible", "undo_unavailable": "declared idempotent, no undo"}),
    ],
)
def test_report_of_a_call_without_an_undo_says_so(world: World, tool: str, report: dict[str, Any]) -> None:
    run_id = open_run(world.agent)
    begin(world.agent, run_id, tool=tool)

    answer = world.agent.post(f"runs/{run_id}/steps/0/complete", {"status": "succeeded", "result": {}})

    assert answer.data["effect"].items() >= report.items()


@pytest.mark.parametrize("status", ["failed", "uncertain"])
def test_other_outcomes_have_no_undo(world: World, status: str) -> None:
    run_id = open_run(world.agent)
    begin(world.agent, run_id)

    answer = world.agent.post(f"runs/{run_id}/steps/0/complete", {"status": status, "error": "no answer"})

    assert (answer.data["state"], answer.data["effect"]["undo"]) == (status, None)


def test_same_outcome_again_changes_nothing_and_another_is_refused(world: World) -> None:
    run_id = open_run(world.agent)
    number = succeed(world.agent, run_id)
    path = f"runs/{run_id}/steps/{number}/complete"

    same = world.agent.post(path, {"status": "succeeded", "result": {"id": "o0"}})
    other = world.agent.post(path, {"status": "failed", "error": "x"})

    assert same.status == 200
    assert (other.status, other.data["code"]) == (409, "outcome_conflict")
    assert (other.data["recorded"], other.data["reported"]) == ("succeeded", "failed")


RESULTS = (
    '{"id":"o1","n":9007199254740993}',
    '{"id":"o1","n":NaN,"m":-Infinity}',
    '{"id":"o1","n":' + "9" * 5000 + "}",
    '{"id":"o1","t":"\\ud800\\u0000"}',
    '{"id":"o1","a":1,"a":2}',
    "[" * 100 + "]" * 100,
    "null",
    '"text"',
)


@pytest.mark.parametrize("result", RESULTS)
def test_result_is_never_refused_for_what_it_holds(any_world: World, result: str) -> None:
    run_id = open_run(any_world.agent)
    begin(any_world.agent, run_id)
    body = f'{{"status":"succeeded","result":{result}}}'.encode()

    answer = any_world.agent.send("POST", f"runs/{run_id}/steps/0/complete", content=body)
    plan = any_world.agent.get(f"runs/{run_id}/plan")

    assert (answer.status, plan.status) == (200, 200)


@pytest.mark.parametrize("number", ["12345678901234567890", "NaN"])
def test_arguments_that_cannot_be_carried_exactly_are_refused(world: World, number: str) -> None:
    run_id = open_run(world.agent)
    body = f'{{"tool":"shop.order","args":{{"n":{number}}}}}'.encode()

    answer = world.agent.send("POST", f"runs/{run_id}/calls", content=body)

    assert (answer.status, answer.data["code"]) == (400, "not_canonical")
    assert answer.data["detail"].startswith("n: ")


def test_arguments_with_a_key_twice_are_refused(world: World) -> None:
    run_id = open_run(world.agent)

    answer = world.agent.send(
        "POST", f"runs/{run_id}/calls", content=b'{"tool":"shop.order","args":{"a":{"b":1,"b":2}}}'
    )

    assert (answer.status, answer.data["errors"][0]["field"]) == (400, "args")
