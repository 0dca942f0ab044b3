"""Halts over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.core.documents import halt_document
from approvals.queries import list_halts
from tests.api.world import World, begin, open_run


def test_halt_stops_new_calls_and_tells_what_is_in_flight(any_world: World) -> None:
    run_id = open_run(any_world.agent)
    begin(any_world.agent, run_id)

    answer = any_world.operator.post(
        "halt", {"reason": "duplicates", "scope": {"tool": "shop.*", "principal": "agent"}}
    )
    blocked = begin(any_world.agent, run_id)
    elsewhere = begin(any_world.api("other_agent"), open_run(any_world.api("other_agent")))

    assert (answer.status, answer.data["in_flight"], answer.data["added_by"]) == (201, 1, "operator")
    assert answer.data["scope"] == {"tool": "shop.*", "principal": "agent"}
    assert blocked.data["violations"] == [{"code": "halted", "message": "kill switch: duplicates"}]
    assert elsewhere.status == 201


def test_halts_are_listed_and_lifted_one_or_all(any_world: World) -> None:
    ids = [any_world.operator.post("halt", {"reason": f"reason {number}"}).data["id"] for number in range(3)]

    one = any_world.admin.post("resume", {"id": ids[0]})
    again = any_world.admin.post("resume", {"id": ids[0]})
    standing = any_world.api("auditor").get("halts").data["results"]
    rest = any_world.admin.post("resume")
    everything = any_world.api("auditor").get("halts", all="true", limit=2).data

    assert (one.data, again.data, rest.data) == ({"lifted": 1}, {"lifted": 0}, {"lifted": 2})
    assert [halt["id"] for halt in standing] == ids[1:]
    assert everything["results"] == [halt_document(record) for record in list_halts(active_only=False)][:2]
    assert [halt["id"] for halt in any_world.admin.get(everything["next"]).data["results"]] == ids[2:]


def test_unknown_halts_cannot_be_lifted(world: World) -> None:
    assert world.admin.post("resume", {"id": "halt_x"}).status == 404


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ({}, "reason"),
        ({"reason": ""}, "reason"),
        ({"reason": "  "}, "reason"),
        ({"reason": "x", "scope": {"tol": "*"}}, "scope.tol"),
        ({"reason": "x", "scope": {"tool": ""}}, "tool"),
        ({"reason": "x", "scope": {"tool": ["*"]}}, "scope.tool"),
        ({"reason": "x", "scope": "*"}, "scope"),
        ({"reason": "a\u0007b"}, "reason"),
    ],
)
def test_halts_that_nobody_could_mean_are_refused(world: World, body: dict[str, Any], part: str) -> None:
    answer = world.operator.post("halt", body)

    assert (answer.status, answer.data["detail"].partition(":")[0]) == (400, part)
    assert list_halts() == []


def test_lifting_by_a_mistyped_field_lifts_nothing(world: World) -> None:
    world.operator.post("halt", {"reason": "x"})

    assert world.admin.post("resume", {"halt": "halt_x"}).status == 400
    assert len(list_halts()) == 1
