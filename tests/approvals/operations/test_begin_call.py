"""Announcing a call: what is committed, what is refused and journaled, what is malformed and leaves nothing."""

from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connection

from approvals.core.errors import BadCall, CallBlocked, KeyConflict
from approvals.operations.sweep import sweep_timeouts
from ledger.core.errors import ForeignRun, RunClosed, RunNotFound
from ledger.core.statuses import StepState
from ledger.operations.runs import close_run, take_run
from ledger.queries import get_run, list_events, list_steps
from manifests_registry.queries import get_document
from reversi_sdk.canonical import CanonicalError, canonical_bytes, sha256_hex
from reversi_sdk.errors import InvalidInput
from reversi_site.kit.transactions import durable
from tests.approvals.factories import ARGS, LATER, NOW, begin, codes, complete, kinds, last_event, make_run, succeed
from tests.databases import Database
from tests.manifests_registry.factories import make_snapshot, shop


def test_begin_call_commits_the_step_before_the_call(db: Database) -> None:
    run = make_run()
    snapshot = shop(timeout_ms="5s")

    begun = begin(run_id=run.id, snapshot=snapshot, reason="invoice 12")

    step = list_steps(run.id)[0]
    assert begun.step == step
    assert (step.state, step.tool, step.effect, step.upstream) == (
        StepState.INTENDED,
        "shop.order",
        "reversible",
        "shop",
    )
    assert (step.timeout_ms, step.observed_by, step.unrecoverable) == (5000, "gateway", None)
    assert kinds(run.id) == ["opened", "intended"]
    assert last_event(run.id).data is not None


def test_begin_call_keeps_the_manifests_of_every_follow_up(db: Database) -> None:
    snapshot = shop()

    step = begin(run_id=make_run().id, snapshot=snapshot).step

    checksums = {tool: entry.checksum for tool, entry in snapshot.entries.items()}
    assert step.snapshot == checksums
    assert step.manifest_checksum == checksums["shop.order"]
    assert all(get_document(checksum).tool == tool for tool, checksum in checksums.items())


def test_begin_call_keeps_no_argument_that_nothing_names(db: Database) -> None:
    run = make_run()
    args = {"item": "book", "want": "gone", "note": "unnamed-4711", "card": {"number": "unnamed-0815"}}

    begin(run_id=run.id, args=args, snapshot=shop(summary="order"))
    complete(run_id=run.id, number=0, result={"id": "o1", "secret": "unnamed-1234"})

    step = list_steps(run.id)[0]
    assert "unnamed" not in repr(step)
    assert "unnamed" not in repr(list_events(run.id))


def test_begin_call_shows_no_redacted_value(db: Database, configure: Any) -> None:
    configure(redaction=("$args.phone",))
    run = make_run()
    snapshot = shop(
        summary="order {{args.item}} with {{args.card}} of {{args.phone}}", audit={"redaction": ["$args.card"]}
    )

    begin(run_id=run.id, args={**ARGS, "card": "4711-0815", "phone": "555-1234"}, snapshot=snapshot)

    journal = repr(list_events(run.id)) + repr(list_steps(run.id))
    assert "4711-0815" not in journal
    assert "555-1234" not in journal
    assert list_steps(run.id)[0].summary == "order book with [redacted] of [redacted]"


TIMEOUTS = {"gateway": 60_000, "caller": 15 * 60_000}


@pytest.mark.parametrize("observed_by", TIMEOUTS)
def test_begin_call_waits_as_long_as_usual(sqlite_db: Database, observed_by: str) -> None:
    assert begin(run_id=make_run().id, observed_by=observed_by).timeout_ms == TIMEOUTS[observed_by]


def test_begin_call_uses_the_configured_manifests(sqlite_db: Database) -> None:
    with pytest.raises(CallBlocked) as caught:
        begin(run_id=make_run().id, snapshot=make_snapshot())

    assert codes(caught.value) == ["no_manifest"]


def test_begin_call_journals_what_it_refuses(db: Database) -> None:
    run = make_run(scope=(), actor="billing")

    with pytest.raises(CallBlocked):
        begin(run_id=run.id)

    event = last_event(run.id)
    assert (event.kind, event.actor, event.step) == ("blocked", "billing", None)
    violation = {"code": "permission", "message": "permission shop:write is not in the run's scope"}
    assert event.data == {"tool": "shop.order", "violations": [violation]}
    assert get_run(run.id).next_step == 0


def test_begin_call_is_refused_during_a_rollback(db: Database) -> None:
    run = make_run()
    with durable():
        take_run(run_id=run.id, actor="operator", now=NOW)

    with pytest.raises(CallBlocked) as caught:
        begin(run_id=run.id)

    assert codes(caught.value) == ["run_rolling_back"]


def test_begin_call_on_a_closed_run_comes_before_all_violations(db: Database) -> None:
    run = make_run(scope=())
    close_run(run_id=run.id, actor="agent-a", now=NOW)

    with pytest.raises(RunClosed):
        begin(run_id=run.id)

    assert kinds(run.id) == ["opened", "closed"]


def test_begin_call_belongs_to_the_principal_of_the_run(db: Database) -> None:
    run = make_run()

    with pytest.raises(ForeignRun):
        begin(run_id=run.id, principal="agent-b")

    assert kinds(run.id) == ["opened"]


def test_begin_call_needs_a_run(sqlite_db: Database) -> None:
    with pytest.raises(RunNotFound):
        begin(run_id="run_none")


def test_begin_call_requires_standing_successes_and_keeps_which(db: Database) -> None:
    run = make_run()
    snapshot = make_snapshot({"tool": "shop.login"}, {"tool": "shop.order", "requires": ["shop.login"]})
    with pytest.raises(CallBlocked) as caught:
        begin(run_id=run.id, snapshot=snapshot)
    assert codes(caught.value) == ["requires"]
    for _ in range(2):
        succeed(run_id=run.id, tool="shop.login", snapshot=snapshot)

    step = begin(run_id=run.id, snapshot=snapshot).step

    assert step.requires_steps == (1,)


def test_begin_call_notes_a_deprecated_manifest(db: Database) -> None:
    run = make_run()
    snapshot = make_snapshot(
        {"tool": "shop.put"}, {"tool": "shop.old", "status": "deprecated", "replaced_by": "shop.put"}
    )

    begun = begin(run_id=run.id, tool="shop.old", snapshot=snapshot)

    assert begun.notes == ("manifest deprecated; use shop.put",)
    data = last_event(run.id).data
    assert data is not None
    assert data["notes"] == list(begun.notes)


def test_begin_call_depends_on_earlier_steps(db: Database) -> None:
    run = make_run()
    begin(run_id=run.id)
    begin(run_id=run.id)

    step = begin(run_id=run.id, depends_on=[1, 0, 1]).step

    assert step.depends_on == (0, 1)


ENDLESS: dict[str, Any] = {}
ENDLESS["itself"] = ENDLESS

MALFORMED: dict[str, tuple[dict[str, Any], type[InvalidInput]]] = {
    "args a list": ({"args": [1]}, BadCall),
    "args with a big integer": ({"args": {"n": 2**53}}, CanonicalError),
    "args with nan": ({"args": {"n": float("nan")}}, CanonicalError),
    "args with an object": ({"args": {"n": object()}}, CanonicalError),
    "args with a lone surrogate": ({"args": {"n": "\ud800"}}, CanonicalError),
    "args that contain themselves": ({"args": ENDLESS}, CanonicalError),
    "depends on a later step": ({"depends_on": [0]}, BadCall),
    "depends on a negative step": ({"depends_on": [-1]}, BadCall),
    "depends on true": ({"depends_on": [True]}, BadCall),
    "depends on text": ({"depends_on": "0"}, BadCall),
    "tool empty": ({"tool": ""}, InvalidInput),
    "tool with a NUL byte": ({"tool": "shop\0"}, InvalidInput),
    "tool with a space": ({"tool": "shop order"}, BadCall),
    "tool that turns the line": ({"tool": "shop\u202eredro"}, BadCall),
    "tool no text": ({"tool": ["shop"]}, InvalidInput),
    "tool too long": ({"tool": "x" * 129}, InvalidInput),
    "reason with a NUL byte": ({"reason": "a\0"}, InvalidInput),
    "reason no text": ({"reason": 7}, InvalidInput),
    "key empty": ({"idempotency_key": ""}, InvalidInput),
    "key no text": ({"idempotency_key": 7}, InvalidInput),
    "key too long": ({"idempotency_key": "k" * 256}, InvalidInput),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_begin_call_writes_nothing_for_a_malformed_call(sqlite_db: Database, case: str) -> None:
    fields, error = MALFORMED[case]
    run = make_run()

    with pytest.raises(error):
        begin(run_id=run.id, **fields)

    assert kinds(run.id) == ["opened"]


KEYED = {"key_carrier": {"argument": "key"}}
OWN = "caller-key"

KEYS: dict[str, tuple[dict[str, Any], dict[str, Any], bool, str | None]] = {
    "tool carries none": ({}, {"idempotency_key": OWN}, False, OWN),
    "carried in metadata": ({"key_carrier": {"meta": True}}, {"idempotency_key": OWN}, True, OWN),
    "carried in an argument": (KEYED, {"idempotency_key": OWN}, True, OWN),
    "stands in the argument": (KEYED, {"args": {**ARGS, "key": OWN}}, True, OWN),
    "stands in both": (KEYED, {"args": {**ARGS, "key": OWN}, "idempotency_key": OWN}, True, OWN),
}


@pytest.mark.parametrize("case", KEYS)
def test_begin_call_forwards_the_callers_key_where_one_is_carried(sqlite_db: Database, case: str) -> None:
    manifest, fields, is_sent, ledger_id = KEYS[case]
    run = make_run()

    begun = begin(run_id=run.id, snapshot=shop(**manifest), **fields)

    assert begun.idempotency_key == begun.step.idempotency_key == (OWN if is_sent else None)
    data = last_event(run.id).data
    assert data is not None
    assert data["ledger_id"] == ledger_id


def test_begin_call_makes_a_key_of_the_step(sqlite_db: Database) -> None:
    run = make_run()
    begin(run_id=run.id)

    begun = begin(run_id=run.id, snapshot=shop(**KEYED))

    assert begun.idempotency_key == sha256_hex(canonical_bytes(["call", run.id, 1, "shop.order"]))
    data = last_event(run.id).data
    assert data is not None
    assert data["ledger_id"] is None


def test_begin_call_refuses_two_keys(sqlite_db: Database) -> None:
    run = make_run()

    with pytest.raises(KeyConflict) as caught:
        begin(run_id=run.id, snapshot=shop(**KEYED), args={**ARGS, "key": "other"}, idempotency_key=OWN)

    assert caught.value.code == "effect/idempotency_key_conflict"
    assert kinds(run.id) == ["opened"]


def test_begin_call_is_refused_by_a_store_that_takes_no_step(sqlite_db: Database) -> None:
    run = make_run()
    sqlite_db.raw().execute("CREATE TRIGGER full BEFORE INSERT ON ledger_step BEGIN SELECT RAISE(ABORT, 'full'); END")

    with pytest.raises(IntegrityError, match="full"):
        begin(run_id=run.id)

    assert kinds(run.id) == ["opened"]


def test_sweep_of_a_broken_run_does_not_keep_the_others_waiting(db: Database, caplog: pytest.LogCaptureFixture) -> None:
    for run_id in ("run_a", "run_broken", "run_c"):
        make_run(run_id=run_id)
        begin(run_id=run_id, snapshot=shop(timeout_ms=999))

    def failing(execute: Any, sql: str, params: Any, *rest: Any) -> Any:
        if "run_broken" in str(params):
            raise OperationalError("database disk image is malformed")
        return execute(sql, params, *rest)

    with connection.execute_wrapper(failing):
        assert sweep_timeouts(now=LATER, grace_ms=0) == 2

    assert "could not be swept: database disk image is malformed" in caplog.text
    assert sweep_timeouts(now=LATER, grace_ms=0) == 1


def test_sweep_makes_overdue_calls_uncertain(db: Database) -> None:
    run = make_run()
    begin(run_id=run.id, snapshot=shop(timeout_ms=999))
    begin(run_id=run.id, snapshot=shop(timeout_ms=2000))

    assert sweep_timeouts(now=LATER, grace_ms=0) == 1
    assert sweep_timeouts(now=LATER, grace_ms=0) == 0

    assert [step.state for step in list_steps(run.id)] == [StepState.UNCERTAIN, StepState.INTENDED]
    assert complete(run_id=run.id, number=0).state is StepState.SUCCEEDED
    assert "late" in kinds(run.id)
