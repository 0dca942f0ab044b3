"""A repeated POST with its `Idempotency-Key` is answered like the first one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection

from ledger.core.errors import AnswerLost
from ledger.models import IdempotentAnswer
from ledger.operations import idempotency
from ledger.operations.idempotency import begin_answer, forget_answer, keep_answer, purge_answers
from ledger.queries import list_runs, list_steps
from reversi_site.kit.api.answers import KeptAnswer, Reservation
from reversi_site.kit.api.errors import KeyInFlight, KeyReused
from tests.api.world import World, begin, open_run
from tests.databases import Database

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ANSWER = KeptAnswer(201, "application/json", b'{"id":"secret-4711"}')


def reserve(**changes: Any) -> KeptAnswer | Reservation:
    usual = {"caller": "a", "route": "POST /v1/runs", "key": "k", "body": b"{}", "now": NOW}
    return begin_answer(**{**usual, **changes})


def reserved(**changes: Any) -> Reservation:
    found = reserve(**changes)
    assert isinstance(found, Reservation)
    return found


def age_by(milliseconds: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE ledger_idempotentanswer SET started_ms = started_ms - %s", [milliseconds])


def test_repeated_request_gets_the_first_answer_and_does_nothing(any_world: World) -> None:
    first, second = (any_world.agent.post("runs", {"scope": ["shop:*"]}, key="k1") for _ in range(2))

    assert (first.status, second.status, second.content) == (201, 201, first.content)
    assert second.headers["Idempotency-Replayed"] == "true"
    assert len(list_runs()) == 1


def test_other_body_under_the_key_is_refused(any_world: World) -> None:
    any_world.agent.post("runs", {"scope": []}, key="k1")

    answer = any_world.agent.post("runs", {"scope": ["shop:*"]}, key="k1")

    assert (answer.status, answer.data["code"]) == (422, "idempotency_key_reused")
    assert len(list_runs()) == 1


def test_key_belongs_to_its_caller_and_route(world: World) -> None:
    mine, other = open_run(world.agent), open_run(world.agent)
    body = {"tool": "shop.order", "args": {}}

    steps = [world.agent.post(f"runs/{run_id}/calls", body, key="k1").data["step"] for run_id in (mine, other, mine)]
    theirs = world.api("other_agent").post(f"runs/{mine}/calls", body, key="k1")

    assert steps == [0, 0, 0]
    assert (len(list_steps(mine)), len(list_steps(other)), theirs.status) == (1, 1, 403)


def test_refused_call_is_refused_the_same_way(world: World) -> None:
    run_id = open_run(world.agent, scope=[])
    body = {"tool": "shop.order", "args": {}}

    first, second = (world.agent.post(f"runs/{run_id}/calls", body, key="k1") for _ in range(2))

    assert (second.status, second.content) == (403, first.content)
    assert second.headers["Content-Type"] == first.headers["Content-Type"] == "application/problem+json"


def test_request_that_was_asked_to_come_again_is_looked_at_again(world: World) -> None:
    run_id = open_run(world.agent)
    path, rename = f"runs/{run_id}/calls", {"tool": "shop.rename", "args": {"id": "o1"}}
    before = {"found": True, "value": {"name": "old", "found": True}}
    pay = {"tool": "shop.pay", "args": {}}

    asked = world.agent.post(path, rename, key="k1")
    brought = world.agent.post(path, {**rename, "before": before}, key="k1")
    waiting = world.agent.post(path, pay, key="k2")
    world.api("approver").post(f"approvals/{waiting.data['approval']['id']}/approve")
    passed = world.agent.post(path, pay, key="k2")

    assert (asked.status, brought.status) == (428, 201)
    assert (waiting.status, passed.status) == (202, 201)


def test_mended_request_may_keep_its_key(world: World) -> None:
    refused = world.agent.post("runs", {"scopes": []}, key="k1")
    mended = world.agent.post("runs", {"scope": []}, key="k1")

    assert (refused.status, mended.status) == (400, 201)


def test_started_rollback_is_answered_once(world: World) -> None:
    run_id = open_run(world.agent)
    begin(world.agent, run_id)

    first, second = (world.operator.post(f"runs/{run_id}/rollback", {"confirm": True}, key="k1") for _ in range(2))

    assert (first.status, second.status, second.data["job"]) == (202, 202, first.data["job"])


@pytest.mark.parametrize("key", ["", " ", "a b", "é", "x" * 256, "a\tb"])
def test_header_that_is_no_key_is_refused(world: World, key: str) -> None:
    answer = world.agent.post("runs", {"scope": []}, key=key)

    assert (answer.status, answer.data["code"]) == (400, "invalid_idempotency_key")
    assert len(list_runs()) == 0


def test_request_in_flight_is_told_to_wait(db: Database) -> None:
    reserved()

    with pytest.raises(KeyInFlight):
        reserve()
    with pytest.raises(KeyReused):
        reserve(body=b"other")


def test_answer_is_kept_and_unreadable_in_the_database(db: Database) -> None:
    keep_answer(reservation=reserved(), answer=ANSWER)

    row = IdempotentAnswer.objects.get()
    assert reserve() == ANSWER
    assert b"4711" not in bytes(row.ciphertext or b"") + row.scope.encode() + row.body_digest.encode()


def test_answer_that_was_put_elsewhere_does_not_open(db: Database) -> None:
    keep_answer(reservation=reserved(), answer=ANSWER)
    IdempotentAnswer.objects.update(status=200)

    with pytest.raises(AnswerLost):
        reserve()


def test_forgotten_reservation_lets_the_next_request_be_the_first(db: Database) -> None:
    forget_answer(reservation=reserved())

    assert isinstance(reserve(body=b"other"), Reservation)


def test_reservation_of_a_process_that_died_ends(db: Database) -> None:
    slow = reserved()
    age_by(idempotency.IN_FLIGHT_MS + 1000)
    second = reserved()

    keep_answer(reservation=slow, answer=ANSWER)
    forget_answer(reservation=slow)

    with pytest.raises(KeyInFlight):
        reserve()
    keep_answer(reservation=second, answer=ANSWER)
    assert reserve() == ANSWER


def test_answers_are_purged_after_their_day(db: Database) -> None:
    keep_answer(reservation=reserved(), answer=ANSWER)
    reserved(key="other")

    assert purge_answers(now=NOW) == 0
    age_by(idempotency.KEPT_MS + 1000)
    assert purge_answers(now=NOW) == 2
    assert isinstance(reserve(), Reservation)
