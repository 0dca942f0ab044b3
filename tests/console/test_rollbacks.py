"""Plans and rollbacks: what is told, what is confirmed, what is done."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ledger.core.statuses import RunState, StepState
from ledger.queries import get_run, get_step
from rollback.core.jobs import JobState
from rollback.core.ports import Nobody, Tools
from rollback.core.selection import Selection
from rollback.operations.execution import execute_job, run_foreground
from rollback.operations.jobs import note_waiting
from rollback.queries import find_live_job, get_job, get_plan, list_jobs
from tests.console.agents import (
    mixed_run,
    order,
    start_run,
)
from tests.console.conftest import Console
from tests.console.reading import NOW, RUN, confirmed, post, run_of, text_of, url, words_of
from tests.console.world import tools


def test_the_plan_says_what_would_be_done_and_why_not(console: Console) -> None:
    mixed_run(console.world, principal="agent", run_id=RUN)

    page = words_of(text_of(console.client("auditor"), url("plan", run_id=RUN)))

    for told in (
        "Not fully reversible",
        "Will call shop.cancel",
        "id = shop-order-book",
        "the order number stays taken",
        "read back before it counts as done",
        "declared irreversible: it cannot be undone",
        "outcome unknown: reconcile with the downstream system",
        "no manifest: what the call did is unknown",
        "Left standing, because their tools are declared idempotent: step 3",
        get_plan(run_id=RUN, now=NOW).digest,
    ):
        assert told in page, told
    assert "Roll back this run" not in page


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("?step=0", "about a selection only: 0, 1, of which 1 must go first"),
        ("?steps=1", "about a selection only: 1 ."),
        ("?to_step=0", "about a selection only: 1 ."),
    ],
)
def test_a_selection_is_planned_with_what_must_go_first(console: Console, query: str, told: str) -> None:
    run_of(console, "a")
    from gateway.operations.calls import call
    from tests.console.world import shop

    args = {"item": "b", "amount": 1}
    call(RUN, "shop.order", args, execute=lambda a, k: {"id": "b"}, principal="agent", snapshot=shop(), depends_on=[0])

    assert told.rstrip(" .") in words_of(text_of(console.client("operator"), url("plan", run_id=RUN) + query))


@pytest.mark.parametrize("query", ["?steps=x", "?steps=99", "?to_step=-1", "?step=1&to_step=0", "?step=" + "9" * 30])
def test_a_selection_that_does_not_fit_is_refused(console: Console, query: str) -> None:
    run_of(console, "a", "b")

    page = text_of(console.client("operator"), url("plan", run_id=RUN) + query, status=400)

    assert "This cannot be read" in page


def test_confirming_tells_what_is_sent_overwritten_and_left(console: Console) -> None:
    mixed_run(console.world, principal="agent", run_id=RUN)

    page = words_of(text_of(console.client("operator"), url("rollback", run_id=RUN)))

    for told in (
        "shop.cancel id= shop-order-book",
        "1 undo puts back what was there before",
        "Steps 1, 7: the undo makes amends, and what its call names is changed",
        "the order number stays taken (steps 1, 7)",
        "Step 6, mail customer@example.org",
        "Step 3, tag shop-order-book as gift : declared idempotent: its effect stays",
        "believed as answered: step 2",
        "Roll back 3 steps",
    ):
        assert told in page, told


def test_a_rollback_does_what_was_confirmed_and_shows_its_report(console: Console) -> None:
    run_of(console, "a", "b")
    client = console.client("operator")

    answer = client.post(url("rollback", run_id=RUN), confirmed(attempts=3, overwrites="on", closes="on"))
    job = list_jobs(RUN)[0]
    watched = words_of(text_of(client, answer.headers["Location"]))
    progress = client.get(url("job_progress", run_id=RUN, job_id=job.id)).json()
    execute_job(job_id=job.id, tools=tools())

    assert "Waiting for a worker" in watched
    assert "No worker is alive" in watched
    words = "Waiting for a worker"
    assert progress == {
        "state": "queued",
        "words": words,
        "done": 0,
        "total": 0,
        "ended": False,
        "worker_alive": False,
    }
    assert (job.options.retrying.attempts, job.options.is_overwrite_allowed, job.options.closes) == (3, True, True)
    assert job.requested_by == "operator"
    page = words_of(text_of(client, answer.headers["Location"]))
    assert "Complete. Nothing is left to undo" in page
    assert "the order number stays taken (steps 0, 1)" in page
    assert console.world.get("shop-order-a")["state"] == "gone"
    assert get_run(RUN).state is RunState.CLOSED
    assert client.get(url("job_progress", run_id=RUN, job_id=job.id)).json()["ended"] is True


ENDING_A_WAIT: dict[str, tuple[dict[str, object], str]] = {
    "all": ({}, "reversi rollback {run}"),
    "as it was asked for": (
        {"attempts": 3, "overwrites": "on", "closes": "on"},
        "reversi rollback {run} --retries 3 --overwrite --close",
    ),
    "chosen steps": ({"steps": "0"}, "reversi rollback {run} --steps 0"),
}


@pytest.mark.parametrize("case", ENDING_A_WAIT)
def test_a_rollback_that_waits_for_a_gateway_says_for_which_and_what_ends_it(console: Console, case: str) -> None:
    asked, command = ENDING_A_WAIT[case]
    run_of(console, "a")
    client = console.client("operator")
    selection = Selection(steps=(0,)) if "steps" in asked else None
    sent = {**confirmed(), "digest": get_plan(run_id=RUN, now=NOW, selection=selection).digest, **asked}
    address = client.post(url("rollback", run_id=RUN), sent).headers["Location"]
    note_waiting(job_id=list_jobs(RUN)[0].id, upstream="browser")

    watched = words_of(text_of(client, address))

    assert "Waiting for executor: the gateway that holds the session of browser" in watched
    assert f"`{command.format(run=RUN)}` ends the wait after a minute" in watched


def test_a_plan_that_changed_is_refused_and_the_new_one_shown(console: Console) -> None:
    run_of(console, "a")
    seen = confirmed()
    order(console.world, RUN, "b", principal="agent")

    page = post(console.client("operator"), url("rollback", run_id=RUN), seen, status=409)

    assert "the plan of run run_pages changed since it was shown" in words_of(page)
    assert f'value="{get_plan(run_id=RUN, now=NOW).digest}"' in page
    assert str(seen["digest"]) not in page
    assert "Roll back 2 steps" in page
    assert find_live_job(RUN) is None


@pytest.mark.parametrize(
    "change",
    [{"is_read": ""}, {"digest": "x"}, {"digest": ""}, {"attempts": 0}, {"attempts": 11}, {"attempts": "many"}],
)
def test_a_rollback_without_the_whole_confirmation_is_not_started(console: Console, change: dict[str, Any]) -> None:
    run_of(console, "a")
    sent = {name: value for name, value in confirmed(**change).items() if value != ""}

    post(console.client("operator"), url("rollback", run_id=RUN), sent, status=400)

    assert list_jobs(RUN) == []


def test_one_rollback_at_a_time(console: Console) -> None:
    run_of(console, "a")
    client = console.client("operator")
    sent = confirmed()
    post(client, url("rollback", run_id=RUN), sent)

    page = post(client, url("rollback", run_id=RUN), sent, status=409)

    assert "is already queued" in page
    assert "Watch it" in page
    assert len(list_jobs(RUN)) == 1


def test_only_the_chosen_steps_are_rolled_back(console: Console) -> None:
    run_of(console, "a", "b")
    client = console.client("operator")
    address = f"{url('rollback', run_id=RUN)}?steps=1"
    digest = re.search(r'name="digest" value="(\w+)"', text_of(client, address))
    assert digest

    post(client, address, {"digest": digest[1], "attempts": 1, "is_read": "on", "steps": "1"})
    execute_job(job_id=list_jobs(RUN)[0].id, tools=tools())

    assert get_step(RUN, 0).state is StepState.SUCCEEDED
    assert get_step(RUN, 1).state is StepState.COMPENSATED


def test_what_failed_can_be_retried_and_what_is_left_settled(console: Console) -> None:
    mixed_run(console.world, principal="agent", run_id=RUN)
    run_foreground(run_id=RUN, tools=tools(), actor="operator")
    client = console.client("operator")

    page = text_of(client, url("report", run_id=RUN))

    assert "Not complete." in page
    assert f"{url('rollback', run_id=RUN)}?steps=7" in page
    assert "409: the order is locked by the warehouse" in page
    settled = set(re.findall(r"steps/(\d)/resolve/", page))
    assert settled == {"4", "5", "6", "7"}
    assert "/resolve/" not in text_of(console.client("auditor"), url("report", run_id=RUN))


def test_what_waits_to_be_undone_is_not_called_unresolved(console: Console) -> None:
    run_of(console, "a", "b")

    page = words_of(text_of(console.client("operator"), url("report", run_id=RUN)))

    assert "2 still standing" in page
    assert "Not complete." in page
    assert "Settle" not in page


def test_undone_but_not_read_back_can_be_read_back_now(console: Console) -> None:

    run_of(console, "a")
    run_foreground(run_id=RUN, tools=Tools(console.world), actor="operator")
    client = console.client("operator")
    assert "Read back now" in text_of(client, url("report", run_id=RUN))

    post(client, url("verify", run_id=RUN))
    execute_job(job_id=list_jobs(RUN)[0].id, tools=tools())

    page = words_of(text_of(client, url("report", run_id=RUN)))
    assert "Complete." in page
    assert "read back and confirmed" in page
    assert "Read back now" not in page


def test_a_job_is_shown_under_its_own_run_only(console: Console) -> None:
    run_of(console, "a")
    run_foreground(run_id=RUN, tools=tools(), actor="operator")
    start_run(principal="other_agent", run_id="run_theirs")
    job = list_jobs(RUN)[0].id
    client = console.client("other_agent")

    for name in ("job", "job_progress"):
        assert client.get(url(name, run_id="run_theirs", job_id=job)).status_code == 404
        assert client.get(url(name, run_id=RUN, job_id=job)).status_code == 403


class Broken(Nobody):
    """An executor with a fault of its own."""

    def can_run(self, tool: str) -> bool:
        raise RuntimeError("the wires are cut")


def test_a_job_that_broke_down_says_why(console: Console) -> None:
    run_of(console, "a")
    client = console.client("operator")
    post(client, url("rollback", run_id=RUN), confirmed())
    job_id = list_jobs(RUN)[0].id
    with pytest.raises(RuntimeError):
        execute_job(job_id=job_id, tools=Tools(Broken()))

    assert get_job(job_id).state is JobState.FAILED
    page = words_of(text_of(client, url("job", run_id=RUN, job_id=job_id)))
    assert "It broke down. RuntimeError: the wires are cut" in page


def test_nothing_can_run_is_said_before_anything_is_sent(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    run_of(console, "a")
    monkeypatch.setattr("tests.console.world.UNDOS", frozenset())

    page = words_of(text_of(console.client("operator"), url("rollback", run_id=RUN)))

    assert "Nothing: no step can be undone from here as things stand" in page
    assert "nothing can run shop.cancel from here" in page
    assert "I have read" not in page
