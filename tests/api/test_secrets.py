"""What is redacted appears in no answer, log or event, and no answer says anything about the inside."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from approvals.core.people import Caller
from ledger.queries import list_events
from reversi_site.kit.api import views
from tests.api.world import World, begin, open_run, succeed

PIN = "pin-4711-0815"


def test_redacted_values_appear_nowhere(any_world: World, caplog: pytest.LogCaptureFixture) -> None:
    run_id = open_run(any_world.agent)
    path = f"runs/{run_id}"
    answers = [begin(any_world.agent, run_id, args={"item": "book", "pin": PIN})]
    answers.append(
        any_world.agent.post(
            f"{path}/steps/0/complete",
            {"status": "succeeded", "result": {"id": "o1", "secret": "s-777"}, "error": None},
        )
    )
    for suffix in ("", "/steps", "/steps/0", "/events", "/plan", "/report"):
        answers.append(any_world.operator.get(path + suffix))

    seen = b"".join(answer.content for answer in answers).decode()
    events = json.dumps([event.data for event in list_events(run_id)])
    assert {answer.status for answer in answers} == {200, 201}
    assert not any(PIN in text or "s-777" in text for text in (seen, events, caplog.text))


def test_keys_appear_in_no_log(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    world.agent.get("runs", nope="x")
    world.agent.get("runs/nope")
    world.api("revoked").get("runs")

    assert not any(key in caplog.text for key in world.keys.values())


def test_what_nobody_declared_is_answered_without_a_word_about_it(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(views, "read_query", _fail)
    client = Client(raise_request_exception=False)

    answer = client.get("/v1/runs", headers={"Authorization": f"Bearer {world.keys['agent']}"})

    assert (answer.status_code, answer.headers["Content-Type"]) == (500, "application/problem+json")
    assert answer.json()["code"] == "internal_error"
    assert "s-777" not in answer.content.decode()
    assert "s-777" in caplog.text


def _fail(*args: Any) -> Any:
    raise RuntimeError("SELECT s-777")


def test_caller_is_who_the_key_says(world: World) -> None:
    run_id = open_run(world.agent)
    succeed(world.agent, run_id)

    assert {event.actor for event in list_events(run_id)} == {Caller("agent", frozenset()).username}
