from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from ledger import queries
from ledger.core.errors import FenceLost, IllegalTransition, OutcomeConflict
from ledger.core.statuses import ReadBack, StepState
from ledger.operations import compensations as undo
from ledger.operations.journal import LockedRun, lock_run
from ledger.operations.runs import release_run, take_run
from ledger.operations.steps import resolve_outcome
from reversi_site.kit.transactions import durable
from tests.databases import Database
from tests.ledger.factories import NOW, make_run, make_step, settle

S = StepState
WHO: dict[str, Any] = {"actor": "worker", "now": NOW}
Write = Callable[[LockedRun], None]


def begin(run: LockedRun) -> None:
    undo.begin_compensation(run=run, number=0, data={"tool": "shop.cancel"}, **WHO)


def complete(run: LockedRun, read_back: ReadBack = ReadBack.VERIFIED) -> None:
    undo.complete_compensation(run=run, number=0, read_back=read_back, data={}, **WHO)


def fail(run: LockedRun, *, unknown: bool = False) -> None:
    undo.fail_compensation(run=run, number=0, error="no\0way", is_outcome_unknown=unknown, data={}, **WHO)


def resolve(run_id: str, state: StepState, *, now: datetime = NOW) -> None:
    word: dict[str, Any] = {"handle": None, "unrecoverable": None, "note": "looked", "actor": "dana", "now": now}
    with durable():
        resolve_outcome(run=lock_run(run_id), number=0, state=state, **word)


def taken_run() -> tuple[str, int]:
    run = make_run()
    make_step(run_id=run.id, call_key="k")
    with durable():
        return run.id, take_run(run_id=run.id, **WHO)


def write(run_id: str, fence: int, *writes: Write) -> None:
    for one in writes:
        with durable():
            one(undo.lock_for_executor(run_id=run_id, fence=fence))


def test_undo_goes_through_compensating_and_frees_the_key(db: Database) -> None:
    run_id, fence = taken_run()
    write(run_id, fence, begin, complete)
    step = queries.get_step(run_id, 0)
    assert (step.state, step.read_back) == (S.COMPENSATED, ReadBack.VERIFIED)
    kinds = [event.kind for event in queries.list_events(run_id)][3:]
    assert kinds == ["rollback_started", "compensating", "compensated", "verified"]
    assert queries.find_standing_call("k") is None


def test_unverified_undo_says_why(db: Database) -> None:
    run_id, fence = taken_run()
    write(run_id, fence, begin, lambda run: complete(run, ReadBack.UNVERIFIED))
    event = queries.list_events(run_id)[-1]
    assert event.kind == "unverified"
    assert event.data == {"reason": "no verifier is available to run the declared read-back"}


def test_failed_undo_stands_and_can_be_begun_again(db: Database) -> None:
    run_id, fence = taken_run()
    write(run_id, fence, begin, lambda run: fail(run, unknown=True))
    step = queries.get_step(run_id, 0)
    assert (step.state, step.error, step.is_undo_outcome_unknown) == (S.COMPENSATION_FAILED, "no\\u{0}way", True)
    assert queries.find_standing_call("k") == (run_id, 0)
    write(run_id, fence, begin, complete)
    assert queries.get_step(run_id, 0).is_undo_outcome_unknown is False


@pytest.mark.parametrize("late", [begin, complete, fail])
def test_nothing_is_written_under_an_old_fence(db: Database, late: Write) -> None:
    run_id, old = taken_run()
    with durable():
        new = take_run(run_id=run_id, **WHO)
    before = queries.list_events(run_id)
    with pytest.raises(FenceLost):
        write(run_id, old, late)
    assert new == old + 1
    assert queries.list_events(run_id) == before


@pytest.mark.parametrize("early", [complete, fail])
def test_an_outcome_needs_a_begun_undo(db: Database, early: Write) -> None:
    run_id, fence = taken_run()
    with pytest.raises(IllegalTransition):
        write(run_id, fence, early)


def test_begun_undo_is_taken_over_and_journaled(db: Database) -> None:
    run_id, fence = taken_run()
    write(run_id, fence, begin, begin)
    assert [event.kind for event in queries.list_events(run_id)].count("compensating") == 2


def test_late_read_back_confirms_or_revokes(db: Database) -> None:
    run_id, fence = taken_run()
    write(run_id, fence, begin, lambda run: complete(run, ReadBack.UNVERIFIED))
    write(run_id, fence, lambda run: undo.record_read_back(run=run, number=0, mismatch=None, data={}, **WHO))
    assert queries.get_step(run_id, 0).read_back is ReadBack.VERIFIED
    write(run_id, fence, lambda run: undo.record_read_back(run=run, number=0, mismatch="still there", data={}, **WHO))
    step = queries.get_step(run_id, 0)
    assert (step.state, step.error) == (S.COMPENSATION_FAILED, "still there")
    assert [event.kind for event in queries.list_events(run_id)][-2:] == ["compensation_failed", "verification_failed"]


@pytest.mark.parametrize("mismatch", [None, "still there"])
def test_late_read_back_needs_an_undone_step(db: Database, mismatch: str | None) -> None:
    run_id, fence = taken_run()
    with pytest.raises(IllegalTransition):
        write(run_id, fence, lambda run: undo.record_read_back(run=run, number=0, mismatch=mismatch, data={}, **WHO))


def test_word_that_an_undo_did_not_happen_leaves_the_time_of_the_call(db: Database) -> None:
    run_id, fence = taken_run()
    write(run_id, fence, begin, lambda run: fail(run, unknown=True))
    settled = queries.get_step(run_id, 0)
    resolve(run_id, S.SUCCEEDED, now=NOW + timedelta(days=3))
    step = queries.get_step(run_id, 0)
    assert (step.state, step.is_undo_outcome_unknown) == (S.SUCCEEDED, False)
    assert (step.settled_at, step.settled_by) == (settled.settled_at, settled.settled_by)


def test_undo_by_hand_is_marked_as_such(db: Database) -> None:
    run_id, fence = taken_run()
    by_hand: dict[str, Any] = {"number": 0, "read_back": ReadBack.NOT_DECLARED, "note": "refunded", "data": {}}
    write(run_id, fence, lambda run: undo.compensate_by_hand(run=run, **by_hand, **WHO))
    step = queries.get_step(run_id, 0)
    assert (step.state, step.is_by_hand) == (S.COMPENSATED, True)
    assert queries.list_events(run_id)[-1].kind == "by_hand"


def test_run_takes_no_calls_until_it_is_released(db: Database) -> None:
    run_id, fence = taken_run()
    assert queries.get_run(run_id).is_rolling_back
    with durable():
        release_run(run_id=run_id, fence=fence, closes=True, report={"complete": True}, **WHO)
    run = queries.get_run(run_id)
    assert (run.is_rolling_back, run.state.value) == (False, "closed")
    assert [event.kind for event in queries.list_events(run_id)][-2:] == ["rollback_finished", "closed"]


def disputed(run_id: str, fence: int, *writes: Write) -> None:
    """A step that a person called succeeded, moved on, and then contradicted by its caller."""
    resolve(run_id, S.SUCCEEDED)
    write(run_id, fence, *writes)
    with pytest.raises(OutcomeConflict):
        settle(run_id=run_id, number=0, state=S.FAILED)


def lost_run() -> tuple[str, int]:
    run = make_run()
    make_step(run_id=run.id, state=S.UNCERTAIN, call_key="k")
    with durable():
        return run.id, take_run(run_id=run.id, **WHO)


def confirm(run: LockedRun, read_back: ReadBack = ReadBack.UNVERIFIED) -> None:
    undo.confirm_compensation(run=run, number=0, read_back=read_back, note="it is gone", data={}, **WHO)


def by_hand(run: LockedRun) -> None:
    undo.compensate_by_hand(run=run, number=0, read_back=ReadBack.NOT_DECLARED, note="refunded", data={}, **WHO)


@pytest.mark.parametrize("seen", [ReadBack.VERIFIED, ReadBack.UNVERIFIED, ReadBack.NOT_DECLARED])
def test_disputed_undo_is_confirmed_and_stays_what_it_was(db: Database, seen: ReadBack) -> None:
    run_id, fence = lost_run()
    disputed(run_id, fence, begin, complete)
    write(run_id, fence, lambda run: confirm(run, seen))
    step = queries.get_step(run_id, 0)
    assert (step.state, step.is_disputed, step.is_by_hand) == (S.COMPENSATED, False, False)
    assert step.read_back is ReadBack.VERIFIED
    assert "resolved_compensated" in [event.kind for event in queries.list_events(run_id)]


def test_confirming_may_verify_what_nobody_could_read_before(db: Database) -> None:
    run_id, fence = lost_run()
    disputed(run_id, fence, begin, lambda run: complete(run, ReadBack.UNVERIFIED))
    write(run_id, fence, lambda run: confirm(run, ReadBack.VERIFIED))
    assert queries.get_step(run_id, 0).read_back is ReadBack.VERIFIED


def test_undo_that_nobody_disputes_is_not_confirmed(db: Database) -> None:
    run_id, fence = taken_run()
    write(run_id, fence, begin, complete)
    with pytest.raises(IllegalTransition):
        write(run_id, fence, confirm)
    with pytest.raises(IllegalTransition):
        write(run_id, fence, by_hand)


@pytest.mark.parametrize("end", [complete, fail])
def test_disputed_undo_of_a_call_that_never_was_is_overruled(db: Database, end: Write) -> None:
    run_id, fence = lost_run()
    disputed(run_id, fence, begin, end)
    resolve(run_id, S.FAILED)
    step = queries.get_step(run_id, 0)
    assert (step.state, step.is_disputed, step.read_back) == (S.FAILED, False, ReadBack.NOT_DECLARED)


def test_undo_by_hand_ends_a_dispute(db: Database) -> None:
    run_id, fence = lost_run()
    disputed(run_id, fence, begin, fail)
    write(run_id, fence, by_hand)
    step = queries.get_step(run_id, 0)
    assert (step.state, step.is_disputed) == (S.COMPENSATED, False)
