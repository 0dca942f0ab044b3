"""Undos that a remote worker runs, under a lease, with what it read back compared here (D23, D27)."""

from collections.abc import Callable
from datetime import timedelta
from threading import Barrier, Thread
from typing import Any

import pytest
from django.db import connections

from approvals.core.errors import CallBlocked, NotPermitted, WiderThanKey
from approvals.core.people import Caller, Limits
from ledger.core.errors import ForeignRun, RunNotFound, StepNotFound
from ledger.core.statuses import ReadBack, StepState
from ledger.core.values import StepRecord
from ledger.queries import check_run_chain, get_run, get_step, list_events
from rollback.core.errors import LeaseLost, OptionsInvalid, RollbackRunning, UndoNotPossible
from rollback.core.jobs import JobKind, JobState
from rollback.core.ports import Answer, ReadFailed
from rollback.models import Attempt, RollbackJob
from rollback.operations.jobs import LEASE_MARGIN_MS, start_rollback
from rollback.operations.recovery import recover_abandoned_jobs
from rollback.operations.remote import RemoteCall, begin_remote_compensation, complete_remote_compensation
from rollback.queries import find_live_job, get_last_job, get_plan
from tests.databases import Database
from tests.rollback.downstream import Downstream
from tests.rollback.journal import (
    AGENT,
    IDEMPOTENT,
    RUN,
    START,
    kinds_of,
    lose_call,
    make_call,
    make_run,
    order,
    roll_back,
    shop,
    state_of,
)

NOW = START + timedelta(hours=1)
GONE = Answer({"state": "gone"})


def agent(*, name: str = AGENT, **limits: Any) -> Caller:
    return Caller(name, frozenset({"agent"}), Limits(**limits) if limits else None)


def begin(*, number: int = 0, **fields: Any) -> RemoteCall:
    usual: dict[str, Any] = {"run_id": RUN, "worker": "w1", "caller": agent(), "now": NOW}
    return begin_remote_compensation(number=number, **{**usual, **fields})


def complete(*, lease: str, number: int = 0, status: str = "succeeded", **fields: Any) -> StepRecord:
    usual: dict[str, Any] = {"run_id": RUN, "caller": agent(), "now": NOW}
    return complete_remote_compensation(number=number, lease=lease, status=status, **{**usual, **fields})


def one_order(**fields: Any) -> None:
    make_run()
    order(downstream=Downstream(), snapshot=shop(**fields))


def test_begin_hands_out_what_a_compensator_gets_and_a_lease(db: Database) -> None:
    one_order(is_read_back=True, timeout_ms=5_000)
    planned = get_plan(run_id=RUN, now=NOW).actions[0]

    call = begin()

    assert call.to_json() == {
        "run_id": RUN,
        "step": 0,
        "tool": "shop.cancel",
        "original_tool": "shop.order",
        "args": {"id": "o0"},
        "idempotency_key": planned.idempotency_key,
        "lease": call.lease,
        "lease_ms": 5_000 + LEASE_MARGIN_MS,
        "verification": {"tool": "shop.get", "arguments": {"id": "o0"}},
    }
    assert state_of() is StepState.COMPENSATING
    assert kinds_of(0) == ["intended", "succeeded", "compensating"]
    attempt = Attempt.objects.get()
    assert (attempt.key, attempt.is_keyed, attempt.outcome) == (planned.idempotency_key, True, None)
    assert call.lease not in str(list(RollbackJob.objects.values()))


def test_begin_carries_the_key_in_the_argument_that_takes_it(sqlite_db: Database) -> None:
    one_order(cancel={"effect": "irreversible", "key_carrier": {"argument": "token"}})

    call = begin().call

    assert call.args == {"id": "o0", "token": call.idempotency_key}


def test_while_a_worker_holds_the_lease_nothing_else_happens_to_the_run(db: Database) -> None:
    one_order()
    begin()

    live = find_live_job(RUN)
    assert live is not None
    assert (live.kind, live.worker, live.requested_by) == (JobKind.COMPENSATION, "w1", AGENT)
    with pytest.raises(RollbackRunning):
        begin()
    with pytest.raises(RollbackRunning):
        roll_back(downstream=Downstream())
    with pytest.raises(CallBlocked, match="rolled back"):
        make_call(downstream=Downstream(), snapshot=shop())


SETTLED: dict[str, tuple[bool, dict[str, Any], StepState, ReadBack, list[str], str | None]] = {
    "done, nothing declared": (
        False,
        {},
        StepState.COMPENSATED,
        ReadBack.NOT_DECLARED,
        ["undo_answered", "compensated"],
        None,
    ),
    "done and seen": (
        True,
        {"read_back": GONE},
        StepState.COMPENSATED,
        ReadBack.VERIFIED,
        ["undo_answered", "compensated", "verified"],
        None,
    ),
    "done and not looked at": (
        True,
        {},
        StepState.COMPENSATED,
        ReadBack.UNVERIFIED,
        ["undo_answered", "compensated", "unverified"],
        None,
    ),
    "done and not seen": (
        True,
        {"read_back": Answer({"state": "placed"})},
        StepState.COMPENSATION_FAILED,
        ReadBack.NOT_DECLARED,
        ["undo_answered", "compensation_failed", "verification_failed"],
        "verification failed: shop.get did not show the expected state after the undo",
    ),
    "done and not readable": (
        True,
        {"read_back": ReadFailed("away")},
        StepState.COMPENSATION_FAILED,
        ReadBack.NOT_DECLARED,
        ["undo_answered", "compensation_failed", "verification_failed"],
        "verification failed: shop.get did not show the expected state after the undo",
    ),
    "failed": (
        False,
        {"status": "failed", "error": "card \u0007expired"},
        StepState.COMPENSATION_FAILED,
        ReadBack.NOT_DECLARED,
        ["undo_answered", "compensation_failed"],
        "card \\u{7}expired",
    ),
    "failed without a word": (
        False,
        {"status": "failed"},
        StepState.COMPENSATION_FAILED,
        ReadBack.NOT_DECLARED,
        ["undo_answered", "compensation_failed"],
        "the undo failed",
    ),
    "lost": (
        False,
        {"status": "unknown", "error": "timed out"},
        StepState.COMPENSATION_FAILED,
        ReadBack.NOT_DECLARED,
        ["undo_answered", "compensation_failed"],
        "outcome unknown: timed out",
    ),
}


@pytest.mark.parametrize("case", SETTLED)
def test_complete_settles_the_step_and_gives_the_run_back(db: Database, case: str) -> None:
    is_declared, fields, state, read_back, events, error = SETTLED[case]
    one_order(is_read_back=is_declared)

    step = complete(lease=begin().lease, **fields)

    assert (step.state, step.read_back, step.error) == (state, read_back, error)
    assert kinds_of(0)[3:] == events
    assert not get_run(RUN).is_rolling_back
    assert [event.kind for event in list_events(RUN)][-1] == "rollback_finished"
    job = get_last_job(RUN)
    assert (job.state, job.done, job.total) == (JobState.DONE, 1, 1)
    assert job.report is not None
    assert job.report["complete"] is (case in ("done, nothing declared", "done and seen"))
    assert check_run_chain(RUN).problems == ()


def test_a_read_back_that_cannot_be_asked_for_is_no_read_back(db: Database) -> None:
    declared = {"tool": "shop.get", "arguments": {"id": "$result.nowhere"}, "expect": {"state": "gone"}}
    one_order(verification=declared)

    call = begin()
    step = complete(lease=call.lease, read_back=GONE)

    assert call.verification is None
    assert step.state is StepState.COMPENSATION_FAILED
    assert kinds_of(0)[-1] == "verification_failed"


def test_an_unknown_outcome_is_repeated_with_the_same_key(db: Database) -> None:
    one_order()
    first = begin()
    complete(lease=first.lease, status="unknown")
    assert get_step(RUN, 0).is_undo_outcome_unknown

    second = begin()
    step = complete(lease=second.lease)

    assert second.call == first.call
    assert (step.state, step.is_undo_outcome_unknown) == (StepState.COMPENSATED, False)


def test_a_failure_after_a_lost_answer_is_the_answer_to_both(sqlite_db: Database) -> None:
    one_order()
    complete(lease=begin().lease, status="unknown")

    step = complete(lease=begin().lease, status="failed", error="no such order")

    assert (step.error, step.is_undo_outcome_unknown) == ("no such order", False)


def test_complete_can_be_repeated_and_not_changed(db: Database) -> None:
    one_order()
    lease = begin().lease
    done = complete(lease=lease)
    events = kinds_of(0)

    assert complete(lease=lease) == done
    assert kinds_of(0) == events
    with pytest.raises(LeaseLost):
        complete(lease=lease, status="failed")


def test_complete_knows_no_other_lease(db: Database) -> None:
    make_run()
    order(downstream=Downstream(), snapshot=shop(), count=2)
    lease = begin(number=1).lease

    for other, number in (("lease_guess", 1), ("", 1), (lease, 0), ("\ud800", 1)):
        with pytest.raises(LeaseLost):
            complete(lease=other, number=number)
    assert complete(lease=lease, number=1).state is StepState.COMPENSATED


def test_a_status_must_be_one(sqlite_db: Database) -> None:
    one_order()

    with pytest.raises(OptionsInvalid):
        complete(lease=begin().lease, status="done")


def test_a_lease_that_ran_out_still_takes_the_answer_while_nobody_else_came(
    db: Database, abandon: Callable[[], None]
) -> None:
    one_order()
    lease = begin().lease
    abandon()

    assert complete(lease=lease).state is StepState.COMPENSATED


def test_a_lease_that_ran_out_is_taken_over_with_the_same_key(db: Database, abandon: Callable[[], None]) -> None:
    one_order()
    first = begin()
    abandon()
    second = begin(worker="w2")

    assert second.call == first.call
    assert second.lease != first.lease
    with pytest.raises(LeaseLost):
        complete(lease=first.lease)
    assert complete(lease=second.lease).state is StepState.COMPENSATED
    assert [attempt.outcome for attempt in Attempt.objects.order_by("number")] == [None, "succeeded"]


def test_a_worker_that_never_comes_back_gives_the_run_back(db: Database, abandon: Callable[[], None]) -> None:
    one_order()
    lease = begin().lease
    abandon()

    assert recover_abandoned_jobs(now=NOW) == 1

    assert not get_run(RUN).is_rolling_back
    assert state_of() is StepState.COMPENSATING
    with pytest.raises(LeaseLost):
        complete(lease=lease)


def test_a_rollback_of_ours_finishes_what_a_lost_worker_began(db: Database, abandon: Callable[[], None]) -> None:
    one_order(is_read_back=True)
    begin()
    abandon()
    downstream = Downstream(is_keyed=True, state={"o0": "placed"})

    report = roll_back(downstream=downstream)

    assert report.is_complete
    assert downstream.undone == {"o0": 1}


def test_a_queued_rollback_is_not_pushed_aside(db: Database) -> None:
    one_order()
    job = start_rollback(run_id=RUN, actor="operator", now=NOW)

    with pytest.raises(RollbackRunning):
        begin()

    live = find_live_job(RUN)
    assert live is not None
    assert live.id == job.id


def not_compensable() -> None:
    make_run()
    make_call(downstream=Downstream(), snapshot=shop(), tool="shop.tag")


def already_undone() -> None:
    one_order()
    complete(lease=begin().lease)


def unknown_outcome() -> None:
    make_run()
    lose_call(snapshot=shop())


def waiting_for_approval() -> None:
    one_order(requires_approval=True)


def in_doubt_and_not_repeatable() -> None:
    toggle = {
        "tool": "shop.toggle",
        "effect": "reversible",
        "compensation": {"tool": "shop.toggle", "self_inverse": True, "argument_map": {"id": "$result.id"}},
    }
    make_run()
    make_call(downstream=Downstream(), snapshot=shop(more=[toggle]), tool="shop.toggle")
    complete(lease=begin().lease, status="unknown")


IMPOSSIBLE: dict[str, tuple[Callable[[], None], str]] = {
    "needs no undo": (not_compensable, "its plan says skip: declared idempotent: its effect stays"),
    "undone before": (already_undone, "its plan says skip: already undone"),
    "outcome unknown": (unknown_outcome, "its plan says unresolved"),
    "needs an approval": (waiting_for_approval, "shop.cancel needs an approval"),
    "in doubt": (in_doubt_and_not_repeatable, "its plan says unresolved"),
}


@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_begin_hands_out_nothing_that_must_not_be_sent(db: Database, case: str) -> None:
    prepare, why = IMPOSSIBLE[case]
    prepare()
    before = (state_of(), kinds_of(0), get_run(RUN).fence, RollbackJob.objects.count())

    with pytest.raises(UndoNotPossible, match=why):
        begin()

    assert (state_of(), kinds_of(0), get_run(RUN).fence, RollbackJob.objects.count()) == before
    assert find_live_job(RUN) is None


def test_an_undo_in_doubt_that_only_a_look_can_settle_is_not_handed_out(sqlite_db: Database) -> None:
    toggle = {
        "tool": "shop.toggle",
        "effect": "reversible",
        "compensation": {
            "tool": "shop.toggle",
            "self_inverse": True,
            "argument_map": {"id": "$result.id"},
            "verification": {"tool": "shop.get", "arguments": {"id": "$result.id"}, "expect": {"state": "gone"}},
        },
    }
    make_run()
    make_call(downstream=Downstream(), snapshot=shop(more=[toggle]), tool="shop.toggle")
    complete(lease=begin().lease, status="unknown")

    with pytest.raises(UndoNotPossible, match="in doubt"):
        begin()


def test_an_undo_waits_for_what_still_stands_on_it(db: Database) -> None:
    make_run()
    downstream = Downstream()
    order(downstream=downstream, snapshot=shop())
    order(downstream=downstream, snapshot=shop(), depends_on=[0])

    with pytest.raises(UndoNotPossible) as caught:
        begin(number=0)

    assert caught.value.blocked_by == (1,)
    complete(lease=begin(number=1).lease, number=1)
    assert complete(lease=begin(number=0).lease, number=0).state is StepState.COMPENSATED


ELSEWHERE: dict[str, tuple[Caller, type[Exception] | None]] = {
    "another agent": (agent(name="eve"), ForeignRun),
    "a key that does not reach": (agent(tenant="other"), WiderThanKey),
    "an auditor": (Caller("ann", frozenset({"auditor"})), ForeignRun),
    "its owner without the role": (Caller(AGENT, frozenset({"auditor"})), NotPermitted),
    "an operator": (Caller("dana", frozenset({"operator"})), None),
}


@pytest.mark.parametrize("case", ELSEWHERE)
def test_undos_are_handed_to(db: Database, case: str) -> None:
    caller, refusal = ELSEWHERE[case]
    one_order()

    if refusal is None:
        assert complete(lease=begin(caller=caller).lease, caller=caller).state is StepState.COMPENSATED
        return
    with pytest.raises(refusal):
        begin(caller=caller)
    lease = begin().lease
    with pytest.raises(refusal):
        complete(lease=lease, caller=caller)


def test_begin_needs_a_run_and_a_step(sqlite_db: Database) -> None:
    one_order()

    with pytest.raises(StepNotFound):
        begin(number=1)
    with pytest.raises(RunNotFound):
        begin(run_id="run_none")


def test_workers_that_begin_at_once_get_one_lease(db: Database) -> None:
    one_order(cancel=IDEMPOTENT)
    start, got = Barrier(8), []

    def work() -> None:
        start.wait()
        try:
            got.append(begin().lease)
        except RollbackRunning:
            got.append("")
        finally:
            connections.close_all()

    threads = [Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(got) == 8
    assert sum(map(bool, got)) == 1
    assert Attempt.objects.count() == 1
