from typing import Any

import pytest

from ledger import queries
from ledger.core.errors import BadField, BadRunId, ForeignRun, RunClosed, RunNotFound
from ledger.models import Run
from ledger.operations.runs import close_run, open_run
from tests.databases import Database
from tests.ledger.factories import NOW, intend, make_run


def test_open_makes_a_sortable_id_and_an_event(db: Database) -> None:
    run = make_run(reason="tidy up", scope=("fs:*",), labels={"team": "a"})
    assert run.id.startswith("run_")
    assert [event.kind for event in queries.list_events(run.id)] == ["opened"]
    assert queries.list_events(run.id)[0].data == {
        "mode": "enforce",
        "scope": ["fs:*"],
        "reason": "tidy up",
        "labels": {"team": "a"},
    }


def test_open_continues_the_run_of_the_same_principal_unchanged(db: Database) -> None:
    first = make_run(run_id="r1", reason="first")
    again, is_new = open_run(run_id="r1", principal="agent-a", reason="other", now=NOW)
    assert not is_new
    assert again == first


def test_open_refuses_another_principal(db: Database) -> None:
    make_run(run_id="r1")
    with pytest.raises(ForeignRun, match="belongs to another principal"):
        open_run(run_id="r1", principal="agent-b", now=NOW)


@pytest.mark.parametrize("bad", ["", "a/b", "-a", "a b", "a\n", "é", "a\0", "x" * 129, ".a", ".."])
def test_open_refuses_an_id_that_is_none_and_writes_nothing(db: Database, bad: str) -> None:
    with pytest.raises(BadRunId):
        make_run(run_id=bad)
    assert Run.objects.count() == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"principal": ""},
        {"actor": "a\0b"},
        {"tenant": "t" * 201},
        {"mode": "loose"},
        {"scope": ("a\0",)},
        {"scope": (3,)},
        {"reason": "\ud800"},
        {"labels": {"a": 3}},
        {"labels": {"a\0": "x"}},
    ],
)
def test_open_refuses_fields_that_cannot_be_stored(db: Database, fields: dict[str, Any]) -> None:
    with pytest.raises(BadField):
        make_run(**fields)
    assert Run.objects.count() == 0


def test_close_refuses_calls_and_is_idempotent(db: Database) -> None:
    run = make_run()
    close_run(run_id=run.id, actor="op", now=NOW)
    close_run(run_id=run.id, actor="op", now=NOW)
    with pytest.raises(RunClosed):
        intend(run_id=run.id)
    assert [event.kind for event in queries.list_events(run.id)] == ["opened", "closed"]


def test_missing_run_is_named(db: Database) -> None:
    with pytest.raises(RunNotFound, match="no run nope"):
        queries.get_run("nope")


def test_list_keeps_what_needs_attention(db: Database) -> None:
    quiet, busy = make_run(run_id="quiet"), make_run(run_id="busy", actor="billing-1")
    intend(run_id=busy.id)
    assert {run.id for run in queries.list_runs()} == {quiet.id, busy.id}
    assert [run.id for run in queries.list_runs(needs_attention=True)] == ["busy"]
    assert [run.id for run in queries.list_runs(actor="billing-*")] == ["busy"]
