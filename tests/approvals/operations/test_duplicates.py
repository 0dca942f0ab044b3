"""The same call twice: refused while the first stands (D16)."""

from threading import Thread
from typing import Any

import pytest
from django.conf import settings
from django.db import connections

from approvals.core.duplicates import call_key, render_key
from approvals.core.errors import CallBlocked
from ledger.core.statuses import Mode, StepState
from ledger.operations.journal import lock_run
from ledger.operations.steps import record_intent
from ledger.queries import list_events, list_steps
from manifests_registry.core.snapshot import Snapshot
from reversi_site.kit.transactions import durable
from tests.approvals.factories import ARGS, NOW, begin, codes, complete, last_event, make_run
from tests.databases import Database
from tests.ledger.factories import make_intent
from tests.manifests_registry.factories import shop


def keyed(scope: str = "run") -> Snapshot:
    return shop(idempotency={"key": "order-{{args.item}}", "scope": scope})


@pytest.mark.parametrize("status", ["intended", "uncertain", "succeeded"])
def test_duplicate_is_refused_while_the_first_stands(db: Database, status: str) -> None:
    run = make_run()
    begin(run_id=run.id, snapshot=keyed())
    if status != "intended":
        complete(run_id=run.id, number=0, status=status)

    with pytest.raises(CallBlocked) as caught:
        begin(run_id=run.id, snapshot=keyed())

    assert [violation.to_json() for violation in caught.value.violations] == [
        {"code": "duplicate", "message": "duplicate of step 0"}
    ]


def test_duplicate_is_free_again_when_the_first_failed(db: Database) -> None:
    run = make_run()
    begin(run_id=run.id, snapshot=keyed())
    complete(run_id=run.id, number=0, status="failed", error="declined")

    assert begin(run_id=run.id, snapshot=keyed()).step.number == 1


def test_duplicate_needs_the_same_rendered_key(db: Database) -> None:
    run = make_run()
    begin(run_id=run.id, snapshot=keyed())

    assert begin(run_id=run.id, snapshot=keyed(), args={**ARGS, "item": "pen"}).step.number == 1


REACH: dict[str, tuple[str, dict[str, Any], dict[str, Any], bool]] = {
    "run, same actor": ("run", {"actor": "a"}, {"actor": "a"}, False),
    "actor, same": ("actor", {"actor": "a"}, {"actor": "a"}, True),
    "actor, other": ("actor", {"actor": "a"}, {"actor": "b"}, False),
    "actor, the principal without one": ("actor", {}, {}, True),
    "actor, named like the principal": ("actor", {}, {"actor": "agent-a"}, True),
    "global, other": ("global", {"actor": "a"}, {"actor": "b"}, True),
}


@pytest.mark.parametrize("case", REACH)
def test_duplicate_reaches_as_far_as_its_scope(db: Database, case: str) -> None:
    scope, one, other, is_refused = REACH[case]
    first, second = make_run(**one), make_run(**other)
    begin(run_id=first.id, snapshot=keyed(scope))

    if not is_refused:
        assert begin(run_id=second.id, snapshot=keyed(scope)).step.number == 0
        return
    with pytest.raises(CallBlocked) as caught:
        begin(run_id=second.id, snapshot=keyed(scope))
    assert caught.value.violations[0].message == f"duplicate of step 0 of run {first.id}"


UNAVAILABLE: dict[str, dict[str, Any]] = {
    "missing": {"want": "gone"},
    "null": {"item": None},
    "an object": {"item": {"a": 1}},
    "a list": {"item": [1]},
}


@pytest.mark.parametrize("case", UNAVAILABLE)
def test_key_is_never_guessed(db: Database, case: str) -> None:
    with pytest.raises(CallBlocked) as caught:
        begin(run_id=make_run().id, snapshot=keyed(), args={"want": "gone", **UNAVAILABLE[case]})

    assert "idempotency_key_unavailable" in codes(caught.value)
    assert "args.item" in caught.value.violations[0].message


def test_duplicate_is_only_recorded_in_observe_mode_and_written_without_its_key(db: Database) -> None:
    run = make_run(mode=Mode.OBSERVE)
    begin(run_id=run.id, snapshot=keyed())

    begun = begin(run_id=run.id, snapshot=keyed())

    assert [violation.message for violation in begun.violations] == ["duplicate of step 0"]
    data = last_event(run.id).data
    assert data is not None
    assert data["violations"] == [{"code": "duplicate", "message": "duplicate of step 0"}]
    complete(run_id=run.id, number=0, status="failed", error="no")
    # The second step never held the key: with the first one gone it is free.
    assert begin(run_id=run.id, snapshot=keyed()).violations == ()


def test_key_that_cannot_be_built_is_only_recorded_in_observe_mode(db: Database) -> None:
    run = make_run(mode=Mode.OBSERVE)

    begun = begin(run_id=run.id, snapshot=keyed(), args={"want": "gone"})

    assert [violation.code.value for violation in begun.violations] == ["idempotency_key_unavailable"]
    assert begun.step.state is StepState.INTENDED


def test_duplicate_that_was_announced_after_the_look_is_refused(postgres_db: Database) -> None:
    # The other call is written and not yet committed: no look can see it, and the constraint waits for it.
    first, second = make_run(), make_run()
    order = keyed("global").get("shop.order")
    assert order is not None
    rendered = render_key(order.manifest, ARGS)
    taken = call_key(order.manifest, rendered, first, settings.REVERSI_CALL_KEY_SECRET)
    refused: list[str] = []
    thread = Thread(target=_begin_and_note, args=(second.id, refused))

    with durable():
        record_intent(run=lock_run(first.id), intent=make_intent(call_key=taken), actor="agent-a", now=NOW)
        thread.start()
        _wait_until_somebody_waits(postgres_db)
    thread.join()

    assert refused == [f"duplicate of step 0 of run {first.id}"]


def _begin_and_note(run_id: str, refused: list[str]) -> None:
    try:
        begin(run_id=run_id, snapshot=keyed("global"))
    except CallBlocked as blocked:
        refused.extend(violation.message for violation in blocked.violations)
    finally:
        connections.close_all()


def _wait_until_somebody_waits(db: Database) -> None:
    watcher = db.raw()
    while watcher.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone() is None:
        continue


def test_call_key_stands_nowhere_as_text(db: Database) -> None:
    run = make_run()

    begin(run_id=run.id, snapshot=shop(idempotency={"key": "secret-{{args.order}}"}), args={**ARGS, "order": "o-4711"})

    summary = list_steps(run.id)[0].summary
    journal = repr(list_events(run.id)).replace(summary, "")
    assert "o-4711" not in journal
