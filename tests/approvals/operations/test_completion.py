"""How calls end, and what of their results is kept (D13, D14, D35)."""

from typing import Any

import pytest

from approvals.core.before import BeforeAnswer
from approvals.core.errors import BadCall, BeforeRequired, CallBlocked, NotResolvable
from approvals.operations.resolution import resolve_step
from ledger.core.errors import IllegalTransition, OutcomeConflict
from ledger.core.handles import BeforeRead, Handle
from ledger.core.statuses import Mode, StepState
from ledger.core.values import StepRecord
from ledger.operations.journal import lock_run
from ledger.queries import list_steps
from manifests_registry import queries
from manifests_registry.core.snapshot import Snapshot
from reversi_sdk.errors import InvalidInput
from reversi_site.kit.transactions import durable
from tests.approvals.factories import ARGS, LATER, begin, complete, kinds, last_event, make_run
from tests.databases import Database
from tests.manifests_registry.factories import make_snapshot, shop


def values(step: StepRecord) -> dict[str, Any]:
    assert isinstance(step.handle, Handle)
    return dict(step.handle.values)


def test_complete_call_adds_the_result_to_the_handle(db: Database) -> None:
    run = make_run()
    begun = begin(run_id=run.id)
    assert values(begun.step) == {"$args.item": "book", "$args.want": "gone"}

    step = complete(run_id=run.id, number=0, result={"id": "o1", "other": 1})

    assert step.state is StepState.SUCCEEDED
    assert values(step) == {"$args.item": "book", "$args.want": "gone", "$result.id": "o1"}
    assert step == list_steps(run.id)[0]


def test_complete_call_marks_what_cannot_be_undone(db: Database) -> None:
    run = make_run()
    begin(run_id=run.id)

    step = complete(run_id=run.id, number=0, result={"number": 1})

    assert (step.state, step.unrecoverable) == (StepState.SUCCEEDED, "argument id: $result.id names nothing")


def test_begin_call_marks_what_can_never_be_undone(db: Database) -> None:
    run = make_run()

    begin(run_id=run.id, args={"want": "gone"})
    step = complete(run_id=run.id, number=0)

    assert step.unrecoverable == "argument item: $args.item names nothing"


@pytest.mark.parametrize("status", ["failed", "uncertain"])
def test_complete_call_keeps_the_handle_when_there_is_no_result(db: Database, status: str) -> None:
    run = make_run()
    begin(run_id=run.id)

    step = complete(run_id=run.id, number=0, status=status, error="declined", result=None)

    assert (step.state, step.error) == (StepState(status), "declined")
    assert values(step) == {"$args.item": "book", "$args.want": "gone"}


def test_complete_call_accepts_the_same_outcome_again(db: Database) -> None:
    run = make_run()
    begin(run_id=run.id)
    first = complete(run_id=run.id, number=0)

    assert complete(run_id=run.id, number=0, result={"id": "another"}) == first
    with pytest.raises(OutcomeConflict):
        complete(run_id=run.id, number=0, status="failed")


def test_complete_call_refuses_an_unknown_status(sqlite_db: Database) -> None:
    run = make_run()
    begin(run_id=run.id)

    with pytest.raises(BadCall):
        complete(run_id=run.id, number=0, status="compensated")


BEFORE = {"tool": "shop.get", "arguments": {"item": "$args.item"}}


def restoring(**before: Any) -> Snapshot:
    undo = {
        "tool": "shop.put",
        "argument_map": {"item": "$args.item", "price": "$before.price"},
        "when_absent": {"tool": "shop.cancel", "argument_map": {"item": "$args.item"}},
    }
    rule = {"absent_when": {"error": "no such *"}}
    put = {"tool": "shop.put", "compensation_only": True}
    order = {"tool": "shop.order", "effect": "reversible", "compensation": undo, "before": {**BEFORE, **rule, **before}}
    return make_snapshot({"tool": "shop.get", "effect": "read_only"}, {"tool": "shop.cancel"}, put, order)


def test_begin_call_asks_for_the_state_before(db: Database) -> None:
    run = make_run()

    with pytest.raises(BeforeRequired) as caught:
        begin(run_id=run.id, snapshot=restoring())

    assert (caught.value.tool, caught.value.arguments) == ("shop.get", {"item": "book"})
    assert kinds(run.id) == ["opened"]


def test_begin_call_sends_nobody_to_read_for_a_refused_call(db: Database) -> None:
    run = make_run(scope=())

    with pytest.raises(CallBlocked):
        begin(run_id=run.id, snapshot=restoring())

    assert kinds(run.id) == ["opened", "blocked"]


STATES: dict[str, tuple[BeforeAnswer, BeforeRead, dict[str, Any]]] = {
    "found": (BeforeAnswer(value={"price": 7, "stock": 1}), BeforeRead.FOUND, {"$before.price": 7}),
    "absent": (BeforeAnswer(error="no such item"), BeforeRead.ABSENT, {}),
}


@pytest.mark.parametrize("case", STATES)
def test_begin_call_keeps_the_state_before(db: Database, case: str) -> None:
    answer, read, kept = STATES[case]

    step = begin(run_id=make_run().id, snapshot=restoring(), before=answer).step

    assert isinstance(step.handle, Handle)
    assert step.handle.before is read
    assert step.handle.values == {"$args.item": "book", **kept}
    assert step.unrecoverable is None


FAILED = {
    "failed read": (BeforeAnswer(error="boom"), "cannot capture the state before: boom"),
    "missing value": (BeforeAnswer(value={}), "cannot capture the state before: $before.price names nothing"),
}


@pytest.mark.parametrize("case", FAILED)
def test_begin_call_refuses_what_could_not_be_undone(db: Database, case: str) -> None:
    answer, message = FAILED[case]
    run = make_run()

    with pytest.raises(CallBlocked) as caught:
        begin(run_id=run.id, snapshot=restoring(), before=answer)

    assert [violation.to_json() for violation in caught.value.violations] == [
        {"code": "before_failed", "message": message}
    ]
    assert kinds(run.id) == ["opened", "blocked"]


@pytest.mark.parametrize("case", FAILED)
@pytest.mark.parametrize("mode", list(Mode))
def test_begin_call_proceeds_where_the_manifest_says_so(db: Database, case: str, mode: Mode) -> None:
    answer, message = FAILED[case]
    run = make_run(mode=mode)

    begun = begin(run_id=run.id, snapshot=restoring(on_missing="proceed"), before=answer)
    step = complete(run_id=run.id, number=0)

    assert begun.violations == ()
    assert (begun.step.unrecoverable, step.unrecoverable) == (message, message)
    assert isinstance(step.handle, Handle)
    assert step.handle.before is BeforeRead.MISSING


@pytest.mark.parametrize("case", FAILED)
def test_begin_call_only_records_a_failed_read_in_observe_mode(db: Database, case: str) -> None:
    answer, message = FAILED[case]
    run = make_run(mode=Mode.OBSERVE)

    begun = begin(run_id=run.id, snapshot=restoring(), before=answer)

    assert [violation.message for violation in begun.violations] == [message]
    assert begun.step.unrecoverable == message


def test_begin_call_whose_read_cannot_be_built_is_refused(db: Database) -> None:
    with pytest.raises(CallBlocked) as caught:
        begin(run_id=make_run().id, snapshot=restoring(), args={"want": "gone"})

    assert caught.value.violations[0].message == (
        "cannot capture the state before: argument item: $args.item names nothing"
    )


def test_failed_read_shows_no_redacted_value(db: Database, configure: Any) -> None:
    configure(redaction=("$args.item",))
    run = make_run()

    with pytest.raises(CallBlocked):
        begin(run_id=run.id, snapshot=restoring(), before=BeforeAnswer(error="book is no item"))

    assert "book" not in repr(last_event(run.id).data)


def after_value(answer: BeforeAnswer | None) -> str | None:
    run = make_run(run_id="run_1")
    number = begin(run_id=run.id, snapshot=restoring(), before=BeforeAnswer(value={"price": 1})).step.number
    step = complete(run_id=run.id, number=number, after=answer)
    assert isinstance(step.handle, Handle)
    return step.handle.after


def test_complete_call_keeps_a_digest_of_the_state_after(db: Database) -> None:
    first = after_value(BeforeAnswer(value={"price": 2, "seen": 1}))
    same = after_value(BeforeAnswer(value={"price": 2, "seen": 2}))
    other = after_value(BeforeAnswer(value={"price": 3}))

    assert first is not None
    assert first == same
    assert first != other
    assert after_value(None) is None
    assert after_value(BeforeAnswer(error="boom")) is None


def resolve(*, run_id: str, status: str = "succeeded", **fields: Any) -> StepRecord:
    usual: dict[str, Any] = {"number": 0, "note": "found it", "actor": "dana", "now": LATER}
    with durable():
        return resolve_step(run=lock_run(run_id), status=status, **{**usual, **fields})


def uncertain_run() -> str:
    run = make_run()
    begin(run_id=run.id)
    complete(run_id=run.id, number=0, status="uncertain", error="timed out")
    return run.id


def test_resolve_step_takes_the_result_a_person_found(db: Database) -> None:
    run_id = uncertain_run()

    step = resolve(run_id=run_id, result={"id": "o9"})

    assert (step.state, step.unrecoverable) == (StepState.SUCCEEDED, None)
    assert values(step)["$result.id"] == "o9"
    data = last_event(run_id).data
    assert data is not None
    assert (last_event(run_id).kind, data["note"]) == ("resolved_succeeded", "found it")


def test_resolve_step_without_result_says_what_the_undo_lacks(db: Database) -> None:
    step = resolve(run_id=uncertain_run())

    assert (step.state, step.unrecoverable) == (StepState.SUCCEEDED, "argument id: $result.id names nothing")


def test_resolve_step_keeps_what_was_lost_before_the_call(db: Database) -> None:
    run = make_run()
    begin(run_id=run.id, snapshot=restoring(on_missing="proceed"), before=BeforeAnswer(error="boom"))
    complete(run_id=run.id, number=0, status="uncertain")

    step = resolve(run_id=run.id, result={"id": "o1"})

    assert step.unrecoverable == "cannot capture the state before: boom"


def test_resolve_step_settles_a_call_without_manifest(db: Database) -> None:
    run = make_run(mode=Mode.OBSERVE)
    begin(run_id=run.id, tool="bank.pay")

    step = resolve(run_id=run.id, result={"id": "o1"})

    assert (step.state, step.handle) == (StepState.SUCCEEDED, Handle())


def test_complete_call_records_the_outcome_when_the_manifest_is_lost(
    sqlite_db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run()
    step = begin(run_id=run.id).step
    for trigger in ("no_update", "no_delete"):
        sqlite_db.raw().execute(f"DROP TRIGGER manifests_registry_manifestdocument_{trigger}")
    sqlite_db.raw().execute("UPDATE manifests_registry_manifestdocument SET payload = x'7b7d'")
    monkeypatch.setattr(queries, "_known", {})

    done = complete(run_id=run.id, number=0)

    assert done.state is StepState.SUCCEEDED
    assert done.unrecoverable == f"manifest document {step.manifest_checksum} was changed after it was stored"
    assert values(done) == values(step)


def test_resolve_step_failed_needs_no_undo(db: Database) -> None:
    step = resolve(run_id=uncertain_run(), status="failed")

    assert (step.state, step.unrecoverable) == (StepState.FAILED, None)


REFUSED: dict[str, tuple[dict[str, Any], type[InvalidInput]]] = {
    "no note": ({"note": " "}, NotResolvable),
    "note with a NUL byte": ({"note": "\0"}, InvalidInput),
    "other status": ({"status": "compensated"}, NotResolvable),
    "a result of a failure": ({"status": "failed", "result": None}, NotResolvable),
}


@pytest.mark.parametrize("case", REFUSED)
def test_resolve_step_refuses(sqlite_db: Database, case: str) -> None:
    fields, error = REFUSED[case]
    run_id = uncertain_run()

    with pytest.raises(error):
        resolve(run_id=run_id, **fields)

    assert list_steps(run_id)[0].state is StepState.UNCERTAIN


def test_resolve_step_refuses_what_is_settled(db: Database) -> None:
    run = make_run()
    begin(run_id=run.id)
    complete(run_id=run.id, number=0)

    with pytest.raises(IllegalTransition):
        resolve(run_id=run.id)


def test_resolve_step_settles_a_dispute_with_the_corrected_result(db: Database) -> None:
    run_id = uncertain_run()
    resolve(run_id=run_id, status="failed")
    with pytest.raises(OutcomeConflict):
        complete(run_id=run_id, number=0)
    assert list_steps(run_id)[0].is_disputed

    step = resolve(run_id=run_id, result={"id": "o2"})

    assert (step.state, step.is_disputed, values(step)["$result.id"]) == (StepState.SUCCEEDED, False, "o2")


OBSERVED: dict[str, tuple[dict[str, Any], list[str], bool]] = {
    "no manifest": ({"tool": "bank.pay"}, ["no_manifest"], False),
    "draft": ({"snapshot": shop(status="draft")}, ["draft_manifest"], True),
    "compensation only": ({"tool": "shop.cancel"}, ["compensation_only"], False),
    "permission": ({"snapshot": shop(permission="bank:write")}, ["permission"], False),
    "requires": ({"snapshot": shop(requires=["shop.get"])}, ["requires"], False),
    "approval": ({"snapshot": shop(approval="always")}, [], False),
}


@pytest.mark.parametrize("case", OBSERVED)
def test_begin_call_only_records_in_observe_mode(db: Database, case: str) -> None:
    fields, found, is_rejected = OBSERVED[case]
    run = make_run(mode=Mode.OBSERVE)

    begun = begin(run_id=run.id, **fields)

    assert [violation.code.value for violation in begun.violations] == found
    data = last_event(run.id).data
    assert data is not None
    assert [violation["code"] for violation in data["violations"]] == found
    assert begun.step.is_contract_rejected is is_rejected


def test_begin_call_keeps_nothing_of_what_nobody_approved(db: Database) -> None:
    run = make_run(mode=Mode.OBSERVE)

    unknown = begin(run_id=run.id, tool="bank.pay", args=ARGS).step
    draft = begin(run_id=run.id, snapshot=shop(status="draft")).step

    assert (unknown.effect, unknown.manifest_checksum, unknown.snapshot) == (None, None, {})
    assert unknown.handle == draft.handle == Handle()
    assert draft.manifest_checksum is not None
    assert complete(run_id=run.id, number=1).unrecoverable is None
