"""The current run of a principal's client: one for all its processes, until nothing happens in it any more."""

from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals.core.errors import ApprovalRequired, NotPermitted, WiderThanKey
from approvals.core.people import Caller, Limits, Role, local_admin
from approvals.core.requests import Decision
from approvals.operations.approvals import cast_vote
from approvals.operations.runs import close_run_for
from gateway.operations.runs import NoPresentRun, RunTerms, current_run, open_another_run, open_named_run, present_run
from ledger.core.errors import BadRunId, ForeignRun
from ledger.core.statuses import Mode, RunState, StepState
from ledger.core.values import RunRecord
from ledger.queries import get_run, list_events, list_runs
from tests.approvals.factories import NOW, begin, make_run
from tests.databases import Database
from tests.gateway import current_runs
from tests.manifests_registry.factories import shop

LIMIT = timedelta(minutes=30)
LATER = NOW + LIMIT + timedelta(seconds=1)


def agent(*, username: str = "agent-a", limits: Limits | None = None, role: Role = Role.AGENT) -> Caller:
    return Caller(username, frozenset({role.value}), limits)


def terms(**fields: Any) -> RunTerms:
    return RunTerms(**{"client": "claude-code", **fields})


def ask(*, caller: Caller | None = None, now: datetime = NOW, **fields: Any) -> tuple[RunRecord, bool]:
    return current_run(caller=caller or agent(), terms=terms(**fields), now=now)


def test_current_run_is_opened_with_the_client_as_its_actor(db: Database) -> None:
    run, is_new = ask(reason="chat")

    assert is_new
    assert (run.principal, run.actor, run.mode, run.scope) == ("agent-a", "claude-code", Mode.ENFORCE, ("*",))
    assert (run.reason, run.labels) == ("chat", {"client": "claude-code", "gateway": "current"})
    assert [event.kind for event in list_events(run.id)] == ["opened"]


def test_present_run_is_the_current_one_and_none_is_opened(db: Database) -> None:
    run, _ = ask()

    assert present_run(caller=agent(), terms=terms(), now=NOW + LIMIT - timedelta(seconds=1)) == run
    with pytest.raises(NoPresentRun, match=f"its last one was {run.id}, with 0 steps"):
        present_run(caller=agent(), terms=terms(), now=LATER)
    with pytest.raises(NoPresentRun, match="none was opened yet"):
        present_run(caller=agent(), terms=terms(client="another"), now=NOW)
    with pytest.raises(NoPresentRun, match="none was opened yet"):
        present_run(caller=agent(username="agent-b"), terms=terms(), now=NOW)
    assert [(each.id, each.state) for each in list_runs()] == [(run.id, RunState.OPEN)]


def test_run_in_which_a_call_waits_for_people_is_not_idle(db: Database) -> None:
    run, _ = ask()
    calling = partial(begin, run_id=run.id, principal="agent-a", snapshot=shop(approval="always"))
    with pytest.raises(ApprovalRequired) as waiting:
        calling()
    approval = waiting.value.approval
    asked_again, answered = LATER, LATER + LIMIT * 2

    assert ask(now=asked_again) == (run, False)
    vote = partial(cast_vote, voter=local_admin("local:boss"), decision=Decision.APPROVE, reason="", via="cli")
    vote(approval_id=approval.id, now=answered)
    later, is_new = ask(now=answered + LIMIT + timedelta(seconds=1))

    assert (later.id, is_new) == (run.id, False)
    assert calling(now=answered + LIMIT + timedelta(seconds=2)).step.state is StepState.INTENDED


def test_run_whose_request_nobody_answered_in_time_is_idle(sqlite_db: Database) -> None:
    run, _ = ask()
    with pytest.raises(ApprovalRequired) as waiting:
        begin(run_id=run.id, principal="agent-a", snapshot=shop(approval="always"))

    _, is_new = ask(now=waiting.value.approval.deadline_at + timedelta(seconds=1))

    assert is_new


NAMED: dict[str, tuple[dict[str, Any], bool]] = {
    "as wide": ({"scope": ("fs:*",), "mode": "observe"}, True),
    "a wider scope": ({"scope": ("fs:read",), "mode": "observe"}, False),
    "a wider mode": ({"scope": ("fs:*",), "mode": "enforce"}, False),
    "a wider mode in any scope": ({"mode": "enforce"}, False),
    "no bounds": ({}, True),
}


@pytest.mark.parametrize("case", NAMED)
def test_named_run_leads_nobody_out_of_the_terms(sqlite_db: Database, case: str) -> None:
    fields, is_allowed = NAMED[case]
    make_run(run_id="run_wide", principal="local:me", scope=("fs:*",), mode="observe")
    naming = partial(open_named_run, caller=local_admin("local:me"), run_id="run_wide", terms=terms(**fields), now=NOW)

    if is_allowed:
        assert naming()[0].id == "run_wide"
    else:
        with pytest.raises(WiderThanKey):
            naming()


def test_current_run_is_continued_with_one_look(db: Database) -> None:
    run, _ = ask()

    with CaptureQueriesContext(connection) as captured:
        again, is_new = ask(now=NOW + LIMIT - timedelta(seconds=1))

    assert (again, is_new) == (run, False)
    assert len(captured) == 1


def test_current_run_stays_while_something_happens_in_it(db: Database) -> None:
    run, _ = ask()
    begin(run_id=run.id, now=NOW + timedelta(minutes=20))

    assert [ask(now=NOW + timedelta(minutes=minutes))[1] for minutes in (49, 51)] == [False, True]


def test_current_run_that_is_idle_is_closed_and_another_opened(db: Database) -> None:
    run, _ = ask()

    another, is_new = ask(now=LATER)

    assert (is_new, another.id != run.id) == (True, True)
    closed = get_run(run.id)
    assert (closed.state, closed.closed_at) == (RunState.CLOSED, LATER)
    assert [(event.kind, event.actor) for event in list_events(run.id)][-1] == ("closed", "reversi:idle")


def test_current_run_that_was_closed_is_followed_by_another(db: Database) -> None:
    run, _ = ask()
    close_run_for(caller=agent(), run_id=run.id, now=NOW)

    assert ask()[1]
    assert list_events(run.id)[-1].actor == "agent-a"


def test_current_run_obeys_the_limit_it_is_given(db: Database) -> None:
    ask()

    _, is_new = current_run(caller=agent(), terms=terms(), now=NOW + timedelta(seconds=2), idle_limit_ms=1000)

    assert is_new


def key(*scope: str, **fields: Any) -> Caller:
    return agent(limits=Limits(scope=scope, **fields))


OTHERS: dict[str, dict[str, Any]] = {
    "another client": {"client": "cursor"},
    "another principal": {"caller": agent(username="agent-b")},
    "another actor": {"actor": "billing"},
    "another tenant": {"tenant": "acme"},
    "another environment": {"environment": "staging"},
    "another mode": {"mode": "observe"},
    "another scope": {"scope": ("shop:*",)},
    "a narrow key": {"caller": key("shop:*")},
    "a key with an actor": {"caller": key("*", actor="robot")},
}


@pytest.mark.parametrize("case", OTHERS)
def test_current_run_is_shared_by_the_same_terms_only(db: Database, case: str) -> None:
    run, _ = ask()

    other, is_new = ask(now=LATER, **OTHERS[case])

    assert is_new
    assert other.id != run.id
    # An idle run is closed by its own client only.
    assert get_run(run.id).state is RunState.OPEN


def test_current_runs_of_two_keys_of_one_owner_do_not_disturb_each_other(db: Database) -> None:
    shop, files = key("shop:*"), key("fs:*")

    first = [ask(caller=shop)[0], ask(caller=files)[0]]
    second = [ask(caller=shop)[0], ask(caller=files)[0]]

    assert first == second
    assert [run.scope for run in first] == [("shop:*",), ("fs:*",)]


def test_current_run_takes_from_the_key_what_it_fixes(db: Database) -> None:
    caller = key("shop:*", modes=("observe",), actor="robot", tenant="acme", environment="staging")

    run, _ = ask(caller=caller)

    assert (run.actor, run.tenant, run.environment, run.mode) == ("robot", "acme", "staging", Mode.OBSERVE)
    assert ask(caller=caller) == (run, False)


def test_current_run_is_never_wider_than_the_key(db: Database) -> None:
    with pytest.raises(WiderThanKey):
        ask(caller=key("shop:*"), scope=("*",))

    assert list_runs() == []


def test_current_run_is_for_those_who_may_open_runs(db: Database) -> None:
    run, _ = ask()

    with pytest.raises(NotPermitted):
        ask(caller=agent(role=Role.REVIEWER))

    assert list_runs() == [run]


def test_another_run_is_not_the_current_one(db: Database) -> None:
    run, _ = ask()

    another = open_another_run(caller=agent(), terms=terms(), now=NOW + timedelta(seconds=1))

    assert another.id != run.id
    assert (another.actor, another.labels) == ("claude-code", {"client": "claude-code"})
    assert ask() == (run, False)


def test_named_run_is_opened_and_then_continued(db: Database) -> None:
    run, is_new = open_named_run(caller=agent(), run_id="run_mine", terms=terms(), now=NOW)

    assert (run.id, is_new, run.scope) == ("run_mine", True, ("*",))
    assert open_named_run(caller=agent(), run_id="run_mine", terms=terms(), now=LATER) == (run, False)
    assert ask()[1]


def test_named_run_of_somebody_else_is_refused(db: Database) -> None:
    run = make_run(principal="agent-b")

    with pytest.raises(ForeignRun):
        open_named_run(caller=agent(), run_id=run.id, terms=terms(), now=NOW)


def test_named_run_that_is_wider_than_the_key_is_refused(db: Database) -> None:
    run = make_run(scope=("*",))

    with pytest.raises(WiderThanKey):
        open_named_run(caller=key("shop:*"), run_id=run.id, terms=terms(), now=NOW)


def test_named_run_needs_a_name_that_can_be_one(db: Database) -> None:
    with pytest.raises(BadRunId):
        open_named_run(caller=agent(), run_id="my run", terms=terms(), now=NOW)


@pytest.mark.parametrize("is_idle", [False, True])
def test_processes_that_ask_at_once_get_one_run(db: Database, is_idle: bool) -> None:
    idle = ask()[0] if is_idle else None

    endings = current_runs.race(db=db, processes=4, threads=6)

    runs = [run for run in list_runs() if run != idle and run.state is RunState.OPEN]
    assert len(runs) == 1
    assert sorted(endings) == sorted([*[runs[0].id] * 23, f"new {runs[0].id}"])
    if idle is not None:
        assert [event.kind for event in list_events(idle.id)] == ["opened", "closed"]
