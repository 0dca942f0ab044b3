"""Runs over HTTP: opened within a key's limits, listed, looked at, closed."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ledger.core.documents import run_document
from ledger.queries import get_run
from tests.api.world import Api, World, begin, make_key, open_run, succeed


def test_open_run_answers_the_run_as_the_command_line_shows_it(any_world: World) -> None:
    answer = any_world.agent.post(
        "runs",
        {
            "id": "run_v",
            "actor": "billing-agent",
            "tenant": "acme",
            "environment": "prod",
            "scope": ["shop:*"],
            "reason": "invoice 12",
            "labels": {"team": "billing"},
        },
    )

    assert answer.status == 201
    assert answer.data == run_document(get_run("run_v"))
    assert (answer.data["principal"], answer.data["mode"], answer.data["steps"]) == ("agent", "enforce", 0)


def test_open_run_continues_an_existing_run_unchanged(world: World) -> None:
    first = world.agent.post("runs", {"id": "run_v", "scope": ["shop:read"]})

    second = world.agent.post("runs", {"id": "run_v", "scope": ["shop:*"], "reason": "more"})

    assert (first.status, second.status) == (201, 200)
    assert second.data == first.data


def test_open_run_of_another_principal_is_refused(world: World) -> None:
    open_run(world.agent, id="run_v")

    answer = world.api("other_agent").post("runs", {"id": "run_v", "scope": []})

    assert (answer.status, answer.data["code"]) == (403, "foreign_run")
    assert "belongs to another principal" in answer.data["detail"]


@pytest.mark.parametrize("bad", ["", "-x", "a b", "a/b", "x" * 129, "run\n", "ü"])
def test_open_run_refuses_a_bad_id(world: World, bad: str) -> None:
    answer = world.agent.post("runs", {"id": bad, "scope": []})

    assert (answer.status, answer.data["code"]) == (400, "bad_run_id")


@pytest.mark.parametrize(
    ("limits", "asked", "field"),
    [
        ({"scope": ["shop:read"]}, {"scope": ["shop:*"]}, "scope"),
        ({"scope": ["shop:*"]}, {"scope": ["*"]}, "scope"),
        ({}, {"mode": "observe"}, "mode"),
        ({"fixed_actor": "a"}, {"actor": "b"}, "actor"),
        ({"fixed_tenant": "a"}, {"tenant": "b"}, "tenant"),
        ({"fixed_environment": "a"}, {"environment": "b"}, "environment"),
    ],
)
def test_open_run_cannot_be_wider_than_the_key(
    world: World, limits: dict[str, Any], asked: dict[str, Any], field: str
) -> None:
    api = Api(make_key("agent", **limits))

    answer = api.post("runs", {"scope": [], **asked})

    assert (answer.status, answer.data["code"], answer.data["field"]) == (403, "wider_than_key", field)


def test_runs_are_listed_newest_first_page_by_page_and_back(any_world: World) -> None:
    ids = [open_run(any_world.agent, id=f"run_{number}") for number in range(5)]

    pages, link = [], "/v1/runs?limit=2"
    while link:
        answer = any_world.agent.get(link)
        pages.append([run["id"] for run in answer.data["results"]])
        last, link = answer, answer.data["next"]
    back = any_world.agent.get(last.data["previous"]).data

    assert pages == [[ids[4], ids[3]], [ids[2], ids[1]], [ids[0]]]
    assert [run["id"] for run in back["results"]] == pages[1]
    assert (any_world.agent.get("runs", limit=2).data["previous"], last.data["next"]) == (None, None)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"state": "closed"}, {"run_closed"}),
        ({"actor": "bill*"}, {"run_billing"}),
        ({"actor": "BILL*"}, set()),
        ({"actor": "b?lling"}, {"run_billing"}),
        ({"actor": "[b]*"}, set()),
        ({"actor": "%"}, set()),
        ({"tenant": "acme"}, {"run_billing"}),
        ({"environment": "p*"}, {"run_billing"}),
        ({"tool": "shop.t*"}, {"run_closed"}),
        ({"attention": "true"}, {"run_billing"}),
        ({"since": "2999-01-01T00:00:00Z"}, set()),
        ({"until": "2999-01-01T00:00:00Z"}, {"run_billing", "run_closed"}),
    ],
)
def test_runs_are_listed_by_filter(any_world: World, query: dict[str, str], expected: set[str]) -> None:
    open_run(any_world.agent, id="run_billing", actor="billing", tenant="acme", environment="prod")
    begin(any_world.agent, "run_billing")
    open_run(any_world.agent, id="run_closed")
    succeed(any_world.agent, "run_closed", tool="shop.tag")
    any_world.agent.post("runs/run_closed/close")

    found = any_world.operator.get("runs", **query)

    assert {run["id"] for run in found.data["results"]} == expected


@pytest.mark.parametrize(
    ("who", "expected"),
    [
        ("agent", {"run_mine"}),
        ("other_agent", {"run_theirs"}),
        ("operator", {"run_mine", "run_theirs"}),
        ("approver", set()),
    ],
)
def test_runs_of_others_are_listed_only_to_those_who_may_read_them(world: World, who: str, expected: set[str]) -> None:
    open_run(world.agent, id="run_mine")
    open_run(world.api("other_agent"), id="run_theirs")

    assert {run["id"] for run in world.api(who).get("runs").data["results"]} == expected


@pytest.mark.parametrize("cursor", ["", "x", "e30=", "eyJhdCI6WzFdLCJiYWNrIjpmYWxzZX0=", "\0", "ü", "A" * 999])
@pytest.mark.parametrize("path", ["runs", "runs/run_v/steps", "runs/run_v/events", "approvals", "halts"])
def test_cursors_that_no_page_carried_are_refused(world: World, path: str, cursor: str) -> None:
    open_run(world.admin, id="run_v")
    is_number = cursor == "eyJhdCI6WzFdLCJiYWNrIjpmYWxzZX0=" and path.startswith("runs/")

    assert world.admin.get(path, cursor=cursor).status == (200 if is_number else 400)


def test_run_is_closed_once_and_takes_no_calls_then(world: World) -> None:
    run_id = open_run(world.agent)

    first, second = (world.agent.post(f"runs/{run_id}/close") for _ in range(2))
    call = begin(world.agent, run_id)

    assert (first.status, first.data["state"], second.data) == (200, "closed", first.data)
    assert (call.status, call.data["code"]) == (409, "run_closed")


def test_steps_and_events_are_listed_in_order(any_world: World) -> None:
    run_id = open_run(any_world.agent)
    for _ in range(3):
        succeed(any_world.agent, run_id)

    steps = any_world.agent.get(f"runs/{run_id}/steps", limit=2).data
    rest = any_world.agent.get(steps["next"]).data
    events = any_world.agent.get(f"runs/{run_id}/events").data["results"]

    assert [step["step"] for step in (*steps["results"], *rest["results"])] == [0, 1, 2]
    assert steps["results"][0] == any_world.agent.get(f"runs/{run_id}/steps/0").data
    assert [event["kind"] for event in events] == ["opened", *["intended", "succeeded"] * 3]
    assert [event["prev"] for event in events[1:]] == [event["hash"] for event in events[:-1]]


@pytest.mark.parametrize("path", ["runs/nope", "runs/nope/plan", "runs/nope/steps", "runs/%00", "runs/a%20b", "runs/ü"])
def test_unknown_runs_are_not_found(world: World, path: str) -> None:
    answer = world.operator.get(path)

    assert (answer.status, answer.data["code"]) == (404, "run_not_found")


@pytest.mark.parametrize("number", [1, 2**31, 10**30])
def test_unknown_steps_are_not_found(world: World, number: int) -> None:
    run_id = open_run(world.agent)

    answer = world.agent.get(f"runs/{run_id}/steps/{number}")

    assert (answer.status, answer.data["code"]) == (404, "step_not_found")


LISTS = ("runs", "runs/run_v/steps", "runs/run_v/events", "approvals", "halts", "runs?tool=shop.*&attention=true")


def queries_of(api: Api, path: str) -> int:
    # The first use of a key in a minute is written down.
    api.get("runs")
    with CaptureQueriesContext(connection) as queries:
        assert api.get(f"/v1/{path}").status == 200
    return len(queries)


def test_lists_take_the_same_number_of_queries_however_long(any_world: World) -> None:
    def grow(first: int, last: int) -> None:
        for number in range(first, last):
            run_id = open_run(any_world.agent, id="run_v" if number == 0 else f"run_{number}")
            for tool in ("shop.order", "shop.order", "shop.pay"):
                begin(any_world.agent, run_id, tool=tool, args={"n": number})
                begin(any_world.agent, "run_v", tool=tool, args={"n": number})
            any_world.operator.post("halt", {"reason": "x", "scope": {"tool": "nothing"}})

    grow(0, 1)
    few = {path: queries_of(any_world.admin, path) for path in LISTS}
    grow(1, 6)

    assert {path: queries_of(any_world.admin, path) for path in LISTS} == few
    assert max(few.values()) <= 9


@pytest.mark.parametrize("who", ["agent", "approver"])
def test_list_of_requests_takes_the_same_number_of_queries_for_everybody(world: World, who: str) -> None:
    api, run_id = world.api(who), open_run(world.agent)
    begin(world.agent, run_id, tool="shop.pay", args={"n": 0})
    few = queries_of(api, "approvals")
    for number in range(1, 8):
        begin(world.agent, run_id, tool="shop.pay", args={"n": number})

    assert queries_of(api, "approvals") == few
