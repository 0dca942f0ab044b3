"""Requests for approval and votes over HTTP."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.test import override_settings

from approvals.api.waiting import Waiters, wait_until
from approvals.core.requests import RequestState
from approvals.operations.people import ensure_user
from approvals.overview import page_approvals
from approvals.queries import get_caller, list_approvals
from tests.api.world import SETUP, Answered, Api, World, begin, make_key, now, open_run, succeed


def waiting_call(world: World, run_id: str | None = None, **fields: Any) -> Answered:
    return begin(world.agent, run_id or open_run(world.agent, id="run_v"), tool="shop.pay", **fields)


def test_call_waits_and_passes_once_when_approved(any_world: World) -> None:
    waiting = waiting_call(any_world)
    approval = waiting.data["approval"]
    again = waiting_call(any_world, "run_v")

    voted = any_world.api("approver").post(f"approvals/{approval['id']}/approve", {"reason": "known customer"})
    passed = waiting_call(any_world, "run_v")
    once_more = waiting_call(any_world, "run_v")

    assert (waiting.status, waiting.data["decision"], approval["state"]) == (202, "approval_required", "pending")
    assert again.data["approval"]["id"] == approval["id"]
    assert (voted.data["state"], voted.data["votes"][0]["reason"]) == ("approved", "known customer")
    assert (passed.status, passed.data["decision"]) == (201, "allowed")
    assert (once_more.status, once_more.data["approval"]["id"] != approval["id"]) == (202, True)


def test_approver_sees_the_complete_arguments_and_lists_do_not(world: World) -> None:
    approval = waiting_call(world, args={"item": "book", "amount": 700}).data["approval"]

    looked = world.api("approver").get(f"approvals/{approval['id']}").data
    (listed,) = world.api("approver").get("approvals").data["results"]

    assert looked["arguments"] == {"item": "book", "amount": 700}
    assert (listed["id"], listed["arguments"]) == (approval["id"], None)


def test_denied_call_is_blocked_with_the_reason(world: World) -> None:
    approval = waiting_call(world).data["approval"]
    world.api("approver").post(f"approvals/{approval['id']}/deny", {"reason": "too much"})

    answer = waiting_call(world, "run_v")

    assert answer.status == 403
    assert answer.data["violations"] == [{"code": "approval_denied", "message": "approval denied: too much"}]


def test_vote_is_cast_once_and_never_late(world: World) -> None:
    approval = waiting_call(world).data["approval"]
    path = f"approvals/{approval['id']}"
    ensure_user(username="second", roles=("finance",), actor=SETUP, now=now())
    world.api("approver").post(f"{path}/approve")

    twice = world.api("approver").post(f"{path}/deny")
    late = Api(make_key("second")).post(f"{path}/deny")

    assert (twice.status, late.status) == (409, 409)
    assert late.data["code"] == "approval_answered"


def test_owner_of_the_run_never_votes_on_its_calls(world: World) -> None:
    ensure_user(username="both", roles=("agent", "finance"), actor=SETUP, now=now())
    api = Api(make_key("both"))
    approval = begin(api, open_run(api), tool="shop.pay").data["approval"]

    answer = api.post(f"approvals/{approval['id']}/approve")

    assert (answer.status, answer.data["code"]) == (403, "not_eligible")


@pytest.mark.parametrize("bad", ["apr_x", "x", "apr_" + "0" * 26, "%00", "apr_" + "é" * 26])
@pytest.mark.parametrize("suffix", ["", "/approve"])
def test_unknown_requests_are_not_found(world: World, bad: str, suffix: str) -> None:
    api = world.api("approver")

    answer = api.post(f"approvals/{bad}{suffix}") if suffix else api.get(f"approvals/{bad}")

    assert (answer.status, answer.data["code"]) == (404, "approval_not_found")


def test_waiting_request_is_answered_as_soon_as_somebody_votes(any_world: World) -> None:
    approval = waiting_call(any_world).data["approval"]
    answers: list[Answered] = []

    def wait() -> None:
        try:
            answers.append(any_world.agent.get(f"approvals/{approval['id']}", wait=60))
        finally:
            connections.close_all()

    waiter = threading.Thread(target=wait)
    started = time.monotonic()
    waiter.start()
    any_world.api("approver").post(f"approvals/{approval['id']}/approve")
    waiter.join(timeout=30)

    assert [answer.data["state"] for answer in answers] == ["approved"]
    assert time.monotonic() - started < 20


def test_waiting_ends_with_its_time(world: World) -> None:
    approval = waiting_call(world).data["approval"]
    started = time.monotonic()

    answer = world.agent.get(f"approvals/{approval['id']}", wait=1)

    assert answer.data["state"] == "pending"
    assert 0.9 < time.monotonic() - started < 10


@pytest.mark.parametrize("wait", ["-1", "x", "1.5", "NaN"])
def test_patience_that_is_no_time_is_refused(world: World, wait: str) -> None:
    approval = waiting_call(world).data["approval"]

    assert world.agent.get(f"approvals/{approval['id']}", wait=wait).status == 400


@override_settings(API_APPROVAL_WAITERS=2)
def test_no_more_than_so_many_wait() -> None:
    waiters = Waiters()
    with waiters.one_more() as first, waiters.one_more() as second:
        wait_until(lambda: False, seconds=30, waiters=waiters)
        with waiters.one_more() as third:
            assert (first, second, third) == (True, True, False)
    with waiters.one_more() as freed:
        assert freed is True


def test_pages_show_what_may_be_seen_and_nothing_else(any_world: World) -> None:
    ensure_user(username="both", roles=("agent", "fin"), actor=SETUP, now=now())
    ensure_user(username="nobody", roles=(), actor=SETUP, now=now())
    for api in (any_world.agent, any_world.api("other_agent"), Api(make_key("both"))):
        run_id = open_run(api)
        for number in range(3):
            begin(api, run_id, tool=("shop.pay", "mail.send")[number % 2], args={"n": number})
    first, *_, last = any_world.admin.get("approvals").data["results"]
    any_world.api("approver").post(f"approvals/{last['id']}/deny")
    any_world.api("approver").post(f"approvals/{first['id']}/approve")

    for who in ("agent", "other_agent", "approver", "auditor", "reviewer", "both", "nobody"):
        for state in (None, *RequestState):
            for at in (now(), now() + timedelta(days=3)):
                asked: dict[str, Any] = {"now": at, "caller": get_caller(who), "states": state and (state,)}
                shown = page_approvals(**asked, size=100).items
                assert list(shown) == list(list_approvals(**asked)), (who, state, at)


def test_requests_are_paged_back_and_forth(world: World) -> None:
    run_id = open_run(world.agent)
    for number in range(5):
        begin(world.agent, run_id, tool="shop.pay", args={"n": number})

    first = world.admin.get("approvals", limit=2).data
    second = world.admin.get(first["next"]).data
    back = world.admin.get(second["previous"]).data

    assert back["results"] == first["results"]
    assert len({each["id"] for page in (first, second) for each in page["results"]}) == 4


def test_approval_of_other_arguments_does_not_pass(world: World) -> None:
    approval = waiting_call(world, args={"amount": 1}).data["approval"]
    world.api("approver").post(f"approvals/{approval['id']}/approve")

    other = waiting_call(world, "run_v", args={"amount": 2})
    elsewhere = waiting_call(world, open_run(world.agent), args={"amount": 1})

    assert (other.status, elsewhere.status) == (202, 202)
    assert succeed(world.agent, "run_v", tool="shop.pay", args={"amount": 1}) == 0
