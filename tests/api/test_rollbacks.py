"""Plans, rollbacks and what settles steps, over HTTP."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from ledger.queries import get_step, list_steps
from rollback.operations.execution import execute_job
from rollback.queries import get_job, get_plan
from rollback.tasks import run_job
from tests.api.world import World, begin, now, open_run, succeed
from tests.reversi_site.charges import command
from tests.rollback.downstream import Downstream


def test_plan_is_that_of_the_command_line(any_world: World) -> None:
    run_id = open_run(any_world.agent)
    for _ in range(3):
        succeed(any_world.agent, run_id)

    answer = any_world.agent.get(f"runs/{run_id}/plan")
    chosen = any_world.agent.get(f"runs/{run_id}/plan", steps="1,2").data
    later = any_world.agent.get(f"runs/{run_id}/plan", to_step=1).data

    assert answer.data == get_plan(run_id=run_id, now=now()).to_json()
    assert ([action["step"] for action in chosen["actions"]], chosen["selection"]["steps"]) == ([2, 1], [1, 2])
    assert [action["step"] for action in later["actions"]] == [2]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"steps": "x"}, "invalid_fields"),
        ({"steps": ""}, "invalid_fields"),
        ({"steps": "7"}, "selection_invalid"),
        ({"to_step": "-1"}, "invalid_fields"),
        ({"steps": "0", "to_step": "0"}, "selection_invalid"),
        ({"step": "0"}, "invalid_fields"),
    ],
)
def test_selections_that_fit_no_run_are_refused(world: World, query: dict[str, str], code: str) -> None:
    run_id = open_run(world.agent)
    succeed(world.agent, run_id)

    answer = world.agent.get(f"runs/{run_id}/plan", **query)

    assert (answer.status, answer.data["code"]) == (400, code)


@pytest.mark.parametrize("body", [None, {}, {"confirm": False}])
def test_rollback_without_confirmation_only_shows_the_plan(world: World, body: Any) -> None:
    run_id = open_run(world.agent)
    succeed(world.agent, run_id)

    answer = world.operator.post(f"runs/{run_id}/rollback", body)

    assert (answer.status, answer.data) == (200, get_plan(run_id=run_id, now=now()).to_json())
    assert world.operator.get(f"runs/{run_id}/rollback").status == 404


def test_rollback_is_queued_and_its_report_found_where_it_was_started(any_world: World, tmp_path: Path) -> None:
    run_id = open_run(any_world.agent)
    succeed(any_world.agent, run_id, tool="shop.order")
    digest = any_world.operator.get(f"runs/{run_id}/plan").data["digest"]
    undo, read = command(tmp_path, "undo.sh", "exit 0"), command(tmp_path, "read.sh", 'echo \'{"state":"gone"}\'')
    reaching = replace(settings.CONFIGURATION, compensator_cmd=undo, reader_cmd=read)

    with override_settings(CONFIGURATION=reaching):
        queued = any_world.operator.post(
            f"runs/{run_id}/rollback", {"confirm": True, "digest": digest, "retries": 2, "close": True}
        )
        run_job(queued.data["job"])
    done = any_world.agent.get(f"runs/{run_id}/rollback").data

    assert (queued.status, queued.data["state"], queued.data["report"]) == (202, "queued", None)
    assert (done["job"], done["state"], done["progress"]) == (queued.data["job"], "done", {"done": 1, "total": 1})
    assert (done["report"]["compensated"], done["report"]["complete"]) == ([0], True)
    assert any_world.agent.get(f"runs/{run_id}").data["state"] == "closed"


def test_rollback_of_a_plan_that_changed_is_refused(world: World) -> None:
    run_id = open_run(world.agent)
    digest = world.operator.get(f"runs/{run_id}/plan").data["digest"]
    succeed(world.agent, run_id)

    answer = world.operator.post(f"runs/{run_id}/rollback", {"confirm": True, "digest": digest})

    assert (answer.status, answer.data["code"]) == (409, "plan_stale")
    assert answer.data["digest"] == get_plan(run_id=run_id, now=now()).digest


def test_second_rollback_is_told_the_job_that_works_already(world: World) -> None:
    run_id = open_run(world.agent)
    first = world.operator.post(f"runs/{run_id}/rollback", {"confirm": True})

    second = world.operator.post(f"runs/{run_id}/rollback", {"confirm": True})

    assert (second.status, second.data["code"]) == (409, "rollback_running")
    assert (second.data["job"], second.data["state"]) == (first.data["job"], "queued")


def test_rollback_options_reach_the_job(world: World) -> None:
    run_id = open_run(world.agent)
    succeed(world.agent, run_id)
    body = {"confirm": True, "retries": 3, "approve_compensations": True, "overwrite": True, "steps": [0]}

    options = get_job(world.operator.post(f"runs/{run_id}/rollback", body).data["job"]).options

    assert (options.retrying.attempts, options.selection and options.selection.steps) == (3, (0,))
    assert (options.approves_compensations, options.is_overwrite_allowed, options.closes) == (True, True, False)


@pytest.mark.parametrize(
    "body",
    [
        {"confirm": "true"},
        {"confirm": 1},
        {"retries": 0},
        {"retries": 11},
        {"retries": "2"},
        {"steps": "1"},
        {"steps": [True]},
        {"to_step": -1},
        {"digest": 5},
        {"force": True},
    ],
)
def test_rollback_options_of_the_wrong_kind_are_refused(world: World, body: dict[str, Any]) -> None:
    run_id = open_run(world.agent)
    name = next(iter(body))

    answer = world.operator.post(f"runs/{run_id}/rollback", body)

    assert (answer.status, answer.data["errors"][0]["field"].partition("[")[0]) == (400, name)


def test_verify_queues_the_open_read_backs(world: World) -> None:
    run_id = open_run(world.agent)

    answer = world.operator.post(f"runs/{run_id}/verify")

    assert (answer.status, answer.data["kind"], answer.data["state"]) == (202, "verify", "queued")


def test_resolve_settles_an_uncertain_step_so_that_it_can_be_undone(any_world: World) -> None:
    run_id = open_run(any_world.agent)
    begin(any_world.agent, run_id)
    any_world.agent.post(f"runs/{run_id}/steps/0/complete", {"status": "uncertain", "error": "no answer"})

    answer = any_world.operator.post(
        f"runs/{run_id}/steps/0/resolve", {"status": "succeeded", "result": {"id": "o1"}, "note": "in the dashboard"}
    )

    assert (answer.status, answer.data["state"], answer.data["settled_by"]) == (200, "succeeded", "person")
    assert any_world.agent.get(f"runs/{run_id}/plan").data["actions"][0]["args"] == {"id": "o1"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"status": "succeeded"}, "note"),
        ({"status": "succeeded", "note": ""}, "note"),
        ({"status": "undone", "note": "x"}, "status"),
        ({"status": "failed", "note": "x", "result": {}}, "result"),
        ({"note": "x"}, "status"),
    ],
)
def test_resolve_needs_a_status_and_a_note(world: World, body: dict[str, Any], field: str) -> None:
    run_id = open_run(world.agent)
    begin(world.agent, run_id)

    answer = world.operator.post(f"runs/{run_id}/steps/0/resolve", body)

    assert (answer.status, answer.data["errors"][0]["field"]) == (400, field)


def test_resolve_of_a_settled_step_is_a_conflict(world: World) -> None:
    run_id = open_run(world.agent)
    succeed(world.agent, run_id)

    answer = world.operator.post(f"runs/{run_id}/steps/0/resolve", {"status": "failed", "note": "x"})

    assert (answer.status, answer.data["code"]) == (409, "illegal_transition")


def test_resolve_by_hand_names_the_step_in_the_report(world: World) -> None:
    run_id = open_run(world.agent)
    succeed(world.agent, run_id, result={})

    answer = world.operator.post(f"runs/{run_id}/steps/0/resolve", {"status": "compensated", "note": "by phone"})

    assert (answer.data["state"], answer.data["by_hand"]) == ("compensated", True)
    assert world.operator.get(f"runs/{run_id}/report").data["by_hand"] == [0]


def test_agent_reconciles_its_own_steps_and_learns_which_stay_open(any_world: World) -> None:
    run_id = open_run(any_world.agent)
    for _ in range(3):
        begin(any_world.agent, run_id)
    found = [
        {"step": 0, "status": "succeeded", "result": {"id": "o1"}, "note": "found by its order number"},
        {"step": 1, "status": "failed", "note": "no such order"},
    ]

    answer = any_world.agent.post(f"runs/{run_id}/reconcile", {"answers": found})
    looked = any_world.agent.post(f"runs/{run_id}/reconcile")

    assert answer.data["settled"] == [{"step": 0, "state": "succeeded"}, {"step": 1, "state": "failed"}]
    assert [step["step"] for step in answer.data["open"]] == [2]
    assert (looked.data["settled"], looked.data["open"]) == ([], answer.data["open"])


def test_remote_worker_undoes_a_step_and_its_read_back_is_compared_here(any_world: World) -> None:
    run_id = open_run(any_world.agent)
    succeed(any_world.agent, run_id)
    path = f"runs/{run_id}/steps/0/compensation"

    call = any_world.agent.post(path, {"worker": "w1"}).data
    other = any_world.operator.post(path, {"worker": "w2"})
    done = any_world.agent.post(
        f"{path}/complete",
        {"lease": call["lease"], "status": "succeeded", "read_back": {"answer": {"state": "gone"}}},
    )

    assert (call["tool"], call["original_tool"], call["args"]) == ("shop.cancel", "shop.order", {"id": "o0"})
    assert call["verification"] == {"tool": "shop.get", "arguments": {"id": "o0"}}
    assert (other.status, other.data["code"]) == (409, "rollback_running")
    assert (done.data["state"], done.data["read_back"]) == ("compensated", "verified")


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        ({"status": "succeeded", "read_back": {"answer": {"state": "there"}}}, "compensation_failed"),
        ({"status": "succeeded", "read_back": {"error": "timed out"}}, "compensation_failed"),
        ({"status": "failed", "error": "card expired"}, "compensation_failed"),
        ({"status": "unknown"}, "compensation_failed"),
        ({"status": "succeeded"}, "compensated"),
    ],
)
def test_remote_outcomes_are_taken_as_they_are(world: World, outcome: dict[str, Any], state: str) -> None:
    run_id = open_run(world.agent)
    succeed(world.agent, run_id)
    path = f"runs/{run_id}/steps/0/compensation"
    lease = world.agent.post(path, {"worker": "w1"}).data["lease"]

    answer = world.agent.post(f"{path}/complete", {"lease": lease, **outcome})

    assert (answer.status, answer.data["state"], get_step(run_id, 0).state) == (200, state, state)


def test_remote_worker_learns_what_stands_in_the_way(world: World) -> None:
    run_id = open_run(world.agent)
    succeed(world.agent, run_id)
    begin(world.agent, run_id, depends_on=[0])

    answer = world.agent.post(f"runs/{run_id}/steps/0/compensation", {"worker": "w1"})

    assert (answer.status, answer.data["code"], answer.data["blocked_by"]) == (409, "undo_not_possible", [1])


def test_executed_report_and_the_report_now_agree(world: World) -> None:
    run_id = open_run(world.agent)
    succeed(world.agent, run_id)
    job = world.operator.post(f"runs/{run_id}/rollback", {"confirm": True}).data["job"]

    execute_job(job_id=job, tools=Downstream().tools)

    assert len(list_steps(run_id)) == 1
    reported = world.operator.get(f"runs/{run_id}/rollback").data["report"]
    assert reported == world.operator.get(f"runs/{run_id}/report").data
