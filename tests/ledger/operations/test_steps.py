import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import IntegrityError, connection
from django.db.migrations.executor import MigrationExecutor
from django.test.utils import CaptureQueriesContext

from ledger import queries
from ledger.core.errors import CallKeyTaken, IllegalTransition, OutcomeConflict, StepNotFound
from ledger.core.handles import Handle, HandleLost
from ledger.core.statuses import SettledBy, StepState
from ledger.core.values import Outcome
from ledger.models import EventData, Step, UndoHandle
from ledger.operations.journal import lock_run
from ledger.operations.steps import record_blocked, resolve_outcome, sweep_overdue
from reversi_site.kit.transactions import durable
from tests.databases import Database
from tests.ledger.factories import NOW, intend, make_run, make_step, settle

S = StepState


def kinds(run_id: str) -> list[str]:
    return [event.kind for event in queries.list_events(run_id)]


def resolve(run_id: str, state: StepState, **fields: object) -> None:
    usual = {"number": 0, "handle": None, "unrecoverable": None, "note": "looked", "actor": "dana", "now": NOW}
    with durable():
        resolve_outcome(run=lock_run(run_id), state=state, **{**usual, **fields})  # type: ignore[arg-type]


def test_intent_is_a_step_an_event_and_a_sealed_handle(db: Database) -> None:
    run = make_run()
    step = intend(run_id=run.id)
    assert (step.number, step.state) == (0, S.INTENDED)
    assert queries.get_step(run.id, 0) == step
    assert kinds(run.id) == ["opened", "intended"]
    stored = UndoHandle.objects.get()
    assert b"book" not in bytes(stored.ciphertext)


def test_intent_numbers_steps_from_zero(db: Database) -> None:
    run = make_run()
    assert [intend(run_id=run.id).number for _ in range(3)] == [0, 1, 2]


def test_arguments_are_kept_as_a_digest_of_the_runs_own_salt(db: Database) -> None:
    first, second = intend(run_id=make_run().id), intend(run_id=make_run().id)
    assert first.args_digest != second.args_digest
    assert not any(b"4711-0815" in bytes(data) for data in EventData.objects.values_list("data", flat=True))


def test_intent_refuses_a_held_call_key_and_names_the_holder(db: Database) -> None:
    first, second = make_run(run_id="r1"), make_run(run_id="r2")
    intend(run_id=first.id, call_key="k")
    with pytest.raises(CallKeyTaken, match="duplicate of step 0 of run r1"):
        intend(run_id=second.id, call_key="k")
    assert queries.list_steps(second.id) == []
    assert kinds(second.id) == ["opened"]


@pytest.mark.parametrize(("state", "is_free"), [(S.FAILED, True), (S.SUCCEEDED, False), (S.UNCERTAIN, False)])
def test_call_key_is_free_again_once_the_call_stands_no_more(db: Database, state: StepState, is_free: bool) -> None:
    run = make_run()
    make_step(run_id=run.id, state=state, call_key="k")
    if is_free:
        assert intend(run_id=run.id, call_key="k").number == 1
    else:
        with pytest.raises(CallKeyTaken):
            intend(run_id=run.id, call_key="k")


def test_database_itself_refuses_a_second_standing_key(db: Database) -> None:
    run = make_run()
    make_step(run_id=run.id, state=S.FAILED, call_key="k")
    make_step(run_id=run.id, call_key="k")
    with pytest.raises(IntegrityError):
        Step.objects.filter(number=0).update(state="succeeded")


def test_outcome_replaces_the_handle_and_the_latest_binds(db: Database) -> None:
    run = make_run()
    make_step(run_id=run.id, state=S.INTENDED)
    old = UndoHandle.objects.get()
    done = settle(run_id=run.id, number=0, outcome=Outcome(S.SUCCEEDED, handle=Handle({"$result.id": 7})))
    assert done.handle == Handle({"$result.id": 7})
    UndoHandle.objects.filter(pk=old.pk).update(nonce=old.nonce, ciphertext=old.ciphertext)
    assert queries.get_step(run.id, 0).handle == HandleLost("the undo handle does not match the journal")


def test_same_outcome_again_changes_nothing(db: Database) -> None:
    run = make_run()
    first = make_step(run_id=run.id)
    assert settle(run_id=run.id, number=0) == first
    assert kinds(run.id) == ["opened", "intended", "succeeded"]


@pytest.mark.parametrize(
    ("first", "then"), [(S.SUCCEEDED, S.FAILED), (S.FAILED, S.SUCCEEDED), (S.UNCERTAIN, S.SUCCEEDED)]
)
def test_caller_cannot_contradict_its_own_outcome(db: Database, first: StepState, then: StepState) -> None:
    run = make_run()
    make_step(run_id=run.id, state=first)
    with pytest.raises(OutcomeConflict) as refusal:
        settle(run_id=run.id, number=0, state=then)
    assert not refusal.value.is_disputed
    assert queries.get_step(run.id, 0).state is first


@pytest.mark.parametrize("state", [S.SUCCEEDED, S.FAILED])
def test_completion_after_the_sweep_settles_and_is_told_late(db: Database, state: StepState) -> None:
    run = make_run()
    make_step(run_id=run.id, state=S.INTENDED)
    assert sweep_overdue(run_id=run.id, number=0, actor="sweep", now=NOW)
    assert settle(run_id=run.id, number=0, state=state).state is state
    assert kinds(run.id)[2:] == ["uncertain", state.value, "late"]


def test_sweep_never_says_failed_and_leaves_settled_steps_alone(db: Database) -> None:
    run = make_run()
    make_step(run_id=run.id, state=S.INTENDED)
    make_step(run_id=run.id)
    assert sweep_overdue(run_id=run.id, number=0, actor="sweep", now=NOW)
    assert not sweep_overdue(run_id=run.id, number=1, actor="sweep", now=NOW)
    assert queries.get_step(run.id, 0).state is S.UNCERTAIN


def test_overdue_counts_each_steps_own_time_out_and_the_grace(db: Database) -> None:
    run = make_run()
    for timeout_ms in (1000, 5000):
        intend(run_id=run.id, timeout_ms=timeout_ms)
    late = NOW + timedelta(milliseconds=3001)
    assert queries.list_overdue(now=late, grace_ms=2000, limit=10) == [(run.id, 0)]
    assert queries.list_overdue(now=late - timedelta(milliseconds=1), grace_ms=2000, limit=10) == []


def test_resolve_settles_what_nobody_else_could(db: Database) -> None:
    run = make_run()
    make_step(run_id=run.id, state=S.UNCERTAIN)
    resolve(run.id, S.SUCCEEDED, handle=Handle({"$result.id": "ch_50"}))
    step = queries.get_step(run.id, 0)
    assert (step.state, step.settled_by, step.handle) == (
        S.SUCCEEDED,
        SettledBy.PERSON,
        Handle({"$result.id": "ch_50"}),
    )
    event = queries.list_events(run.id)[-1]
    assert (event.kind, event.actor, (event.data or {})["note"]) == ("resolved_succeeded", "dana", "looked")


@pytest.mark.parametrize("state", [S.SUCCEEDED, S.FAILED])
def test_resolve_refuses_a_step_that_is_settled(db: Database, state: StepState) -> None:
    run = make_run()
    make_step(run_id=run.id, state=state)
    for wanted in (S.SUCCEEDED, S.FAILED):
        with pytest.raises(IllegalTransition):
            resolve(run.id, wanted)


def test_completion_against_a_persons_word_is_disputed_until_resolved_again(db: Database) -> None:
    run = make_run()
    make_step(run_id=run.id, state=S.INTENDED, call_key="k")
    resolve(run.id, S.FAILED)
    with pytest.raises(OutcomeConflict) as refusal:
        settle(run_id=run.id, number=0)
    assert refusal.value.is_disputed
    assert queries.get_step(run.id, 0).is_disputed
    resolve(run.id, S.SUCCEEDED)
    step = queries.get_step(run.id, 0)
    assert (step.state, step.is_disputed) == (S.SUCCEEDED, False)
    assert kinds(run.id)[2:] == ["resolved_failed", "disputed", "resolved_succeeded"]


def disputed_failure(run_id: str, *, number: int = 0) -> None:
    """A call that a person calls failed and its caller calls succeeded."""
    resolve(run_id, S.FAILED, number=number)
    with pytest.raises(OutcomeConflict):
        settle(run_id=run_id, number=number)


@pytest.mark.parametrize(("word", "is_free"), [(None, False), (S.SUCCEEDED, False), (S.FAILED, True)])
def test_disputed_failure_holds_its_call_key_until_it_is_resolved(
    db: Database, word: StepState | None, is_free: bool
) -> None:
    run = make_run()
    make_step(run_id=run.id, state=S.INTENDED, call_key="k")
    disputed_failure(run.id)
    if word is not None:
        resolve(run.id, word)
    assert queries.get_step(run.id, 0).is_standing is not is_free
    assert queries.find_standing_call("k") == (None if is_free else (run.id, 0))
    if is_free:
        assert intend(run_id=run.id, call_key="k").number == 1
    else:
        with pytest.raises(CallKeyTaken):
            intend(run_id=run.id, call_key="k")


@pytest.mark.parametrize("word", [S.SUCCEEDED, S.FAILED])
def test_dispute_leaves_a_call_key_that_another_call_took_to_that(db: Database, word: StepState) -> None:
    run = make_run()
    make_step(run_id=run.id, state=S.INTENDED, call_key="k")
    resolve(run.id, S.FAILED)
    intend(run_id=run.id, call_key="k")
    with pytest.raises(OutcomeConflict):
        settle(run_id=run.id, number=0)
    assert queries.get_step(run.id, 0).is_disputed
    assert kinds(run.id)[-1] == "disputed"
    assert queries.find_standing_call("k") == (run.id, 1)
    resolve(run.id, word)
    assert queries.find_standing_call("k") == (run.id, 1)
    assert queries.check_run_chain(run.id).problems == ()


def test_migration_leaves_call_keys_to_the_calls_that_took_them(db: Database) -> None:
    run = make_run()
    for key in ("k", "l", "l", "m"):
        make_step(run_id=run.id, state=S.INTENDED, call_key=key)
        resolve(run.id, S.FAILED, number=queries.get_run(run.id).next_step - 1)
    intend(run_id=run.id, call_key="k")
    migrate_ledger("0002_append_only")
    Step.objects.filter(number__lt=4).update(is_disputed=True)
    migrate_ledger("0003_keys_and_events_of_a_step")
    assert list(Step.objects.order_by("number").values_list("call_key", flat=True)) == [None, "l", None, "m", "k"]


def migrate_ledger(name: str) -> None:
    MigrationExecutor(connection).migrate([("ledger", name)])


def test_blocked_call_is_journaled_without_a_step(db: Database) -> None:
    run = make_run()
    violations = [{"code": "halted", "message": "kill switch: stop"}]
    record_blocked(run_id=run.id, tool="shop.order", violations=violations, actor="agent-a", now=NOW)
    assert queries.list_events(run.id)[-1].data == {"tool": "shop.order", "violations": violations}
    assert queries.list_steps(run.id) == []


def test_missing_step_is_named(db: Database) -> None:
    run = make_run(run_id="r1")
    with pytest.raises(StepNotFound, match="run r1 has no step 4"):
        queries.get_step(run.id, 4)
    with pytest.raises(StepNotFound):
        settle(run_id=run.id, number=4)


def test_steps_are_read_with_two_queries_whatever_their_number(db: Database) -> None:
    run = make_run()
    counts = []
    for _ in range(2):
        for _ in range(20):
            make_step(run_id=run.id)
        with CaptureQueriesContext(connection) as captured:
            queries.list_steps(run.id)
        counts.append(len(captured))
    assert counts == [2, 2]


def test_disputed_step_is_no_standing_success(db: Database) -> None:
    run = make_run()
    make_step(run_id=run.id)
    make_step(run_id=run.id, state=S.INTENDED)
    resolve(run.id, S.SUCCEEDED, number=1)
    assert queries.list_standing_successes(run.id, ["shop.order"]) == {"shop.order": 1}
    with pytest.raises(OutcomeConflict):
        settle(run_id=run.id, number=1, state=S.FAILED)
    assert queries.list_standing_successes(run.id, ["shop.order"]) == {"shop.order": 0}


LOOK_UPS: dict[str, Callable[[str], object]] = {
    "run_id=? AND step=?": lambda run_id: queries.get_step(run_id, 0),
    "run_id=? AND number=?": lambda run_id: queries.get_step(run_id, 0),
    "tool=? AND run_id=?": lambda run_id: queries.list_standing_successes(run_id, ["shop.order"]),
    "call_key=?": lambda run_id: queries.find_standing_call("k"),
}


@pytest.mark.parametrize("searched", LOOK_UPS)
def test_one_step_is_found_without_reading_the_rest_of_its_run(db: Database, searched: str) -> None:
    run = make_run()
    make_step(run_id=run.id, call_key="k")
    with CaptureQueriesContext(connection) as captured:
        LOOK_UPS[searched](run.id)
    plans = "\n".join(plan_of(query["sql"]) for query in captured.captured_queries)
    assert searched in plans


def plan_of(sql: str) -> str:
    """Return what an engine means to do, a search by an index in the words of SQLite's planner."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
            return "\n".join(row[-1] for row in cursor.fetchall())
        # A table of one row is read whole, and that says nothing.
        cursor.execute("SET enable_seqscan = off")
        cursor.execute(f"EXPLAIN {sql}")
        conditions = "\n".join(row[0] for row in cursor.fetchall())
        return re.sub(r"\(?\(?(\w+)\)?(?:::text)? = (?:'[^']*'::text|\d+)\)", r"\1=?", conditions)
