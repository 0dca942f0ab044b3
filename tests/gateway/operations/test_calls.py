"""Making a call: announced before, recorded after, raised on, read before and after."""

import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from django.db import connection, transaction

from approvals.core.errors import CallBlocked
from approvals.operations.resolution import resolve_step
from gateway.operations.calls import CallResult
from ledger.core.handles import BeforeRead, Handle
from ledger.core.statuses import Mode, StepState
from ledger.operations.journal import lock_run
from ledger.queries import list_events, list_steps
from manifests_registry.core.snapshot import Snapshot
from reversi_sdk.errors import EffectUncertainError, ToolError
from reversi_site.kit.transactions import durable
from tests.approvals.factories import ARGS, NOW, kinds, make_run
from tests.databases import Database
from tests.gateway.factories import SteppingClock, Tool, make_call
from tests.manifests_registry.factories import make_snapshot, shop


def states(run_id: str) -> list[StepState]:
    return [step.state for step in list_steps(run_id)]


def test_call_records_what_the_tool_returned(db: Database) -> None:
    run = make_run()
    tool = Tool({"id": "o1"})

    called = make_call(run_id=run.id, execute=tool, reason="invoice 12")

    assert (called.result, called.state, called.step.observed_by) == ({"id": "o1"}, StepState.SUCCEEDED, "gateway")
    assert tool.sent == [(ARGS, None)]
    assert kinds(run.id) == ["opened", "intended", "succeeded"]
    assert isinstance(called.step.handle, Handle)
    assert called.step.handle.values["$result.id"] == "o1"


def test_call_is_announced_before_the_tool_runs_and_no_transaction_is_open(db: Database) -> None:
    run = make_run()
    seen: list[tuple[list[str], bool]] = []

    def look(args: Mapping[str, Any], key: str | None) -> dict[str, str]:
        committed = db.raw().execute("SELECT state FROM ledger_step").fetchall()
        seen.append(([state for (state,) in committed], connection.in_atomic_block))
        return {"id": "o1"}

    make_call(run_id=run.id, execute=look)

    assert seen == [(["intended"], False)]


def test_call_refuses_to_run_inside_a_transaction(db: Database) -> None:
    run = make_run()
    tool = Tool({"id": "o1"})

    with pytest.raises(RuntimeError, match="transaction"), transaction.atomic():
        make_call(run_id=run.id, execute=tool)

    assert tool.sent == []


ENDINGS: dict[str, tuple[BaseException, StepState, str]] = {
    "declined": (ToolError("card declined"), StepState.FAILED, "card declined"),
    "bug": (KeyError("id"), StepState.FAILED, "KeyError: 'id'"),
    "silent": (ValueError(), StepState.FAILED, "ValueError"),
    "lost": (EffectUncertainError("no answer after the send"), StepState.UNCERTAIN, "no answer after the send"),
    "timed out": (TimeoutError("60 s"), StepState.UNCERTAIN, "TimeoutError: 60 s"),
    "interrupted": (KeyboardInterrupt(), StepState.UNCERTAIN, "KeyboardInterrupt"),
}


@pytest.mark.parametrize("case", ENDINGS)
def test_call_records_how_the_tool_ended_and_raises_on(db: Database, case: str) -> None:
    error, state, text = ENDINGS[case]
    run = make_run()

    with pytest.raises(type(error)) as caught:
        make_call(run_id=run.id, execute=Tool(error))

    step = list_steps(run.id)[0]
    assert (step.state, step.error) == (state, text)
    assert f"step 0 of run {run.id} is {state}" in caught.value.__notes__


def test_call_that_is_blocked_never_runs(db: Database) -> None:
    run = make_run(scope=())
    tool = Tool({"id": "o1"})

    with pytest.raises(CallBlocked):
        make_call(run_id=run.id, execute=tool)

    assert tool.sent == []
    assert kinds(run.id) == ["opened", "blocked"]


RESULTS: dict[str, Any] = {
    "nothing": None,
    "a number that is none": {"id": "o1", "score": float("nan")},
    "an object": {"id": "o1", "extra": object()},
    "a set": {"id": "o1", "tags": {1, 2}},
}


@pytest.mark.parametrize("case", RESULTS)
def test_call_never_refuses_a_result(db: Database, case: str) -> None:
    run = make_run()

    called = make_call(run_id=run.id, execute=Tool(RESULTS[case]))

    assert called.result is RESULTS[case]
    assert called.state is StepState.SUCCEEDED
    assert (called.step.unrecoverable is None) is (RESULTS[case] is not None)


KEYED = {"key_carrier": {"argument": "key"}}


def test_call_puts_the_key_where_the_tool_takes_it(db: Database) -> None:
    run = make_run()
    tool = Tool({"id": "o1"})

    called = make_call(run_id=run.id, execute=tool, snapshot=shop(**KEYED), idempotency_key="k1")

    assert tool.sent == [({**ARGS, "key": "k1"}, "k1")]
    assert called.idempotency_key == "k1"


def test_call_sends_no_key_to_a_tool_that_carries_none(db: Database) -> None:
    tool = Tool({"id": "o1"})

    make_call(run_id=make_run().id, execute=tool, idempotency_key="k1")

    assert tool.sent == [(ARGS, None)]


def harmless(effect: str = "idempotent", **retry: Any) -> Snapshot:
    rules = {"attempts": 3, "base_ms": 100, "max_ms": 5000, **retry}
    return make_snapshot({"tool": "shop.order", "effect": effect, "retry": rules, "key_carrier": {"meta": True}})


def test_call_repeats_a_harmless_call_inside_one_step_with_one_key(db: Database) -> None:
    run, clock = make_run(), SteppingClock()
    tool = Tool(TimeoutError(), ConnectionResetError(), {"id": "o1"})

    called = make_call(run_id=run.id, execute=tool, snapshot=harmless(), clock=clock, sleep=clock.sleep)

    assert called.state is StepState.SUCCEEDED
    assert tool.sent == [(ARGS, called.idempotency_key)] * 3
    assert clock.slept == [0.1, 0.2]
    assert kinds(run.id) == ["opened", "intended", "succeeded"]


ONCE: dict[str, tuple[Snapshot, BaseException]] = {
    "changes something": (shop(), TimeoutError()),
    "definite failure": (harmless(), ToolError("no")),
    "no time left": (harmless(base_ms="2m", max_ms="2m"), TimeoutError()),
}


@pytest.mark.parametrize("case", ONCE)
def test_call_is_made_once(db: Database, case: str) -> None:
    snapshot, error = ONCE[case]
    tool, clock = Tool(error), SteppingClock()

    with pytest.raises(type(error)):
        make_call(run_id=make_run().id, execute=tool, snapshot=snapshot, clock=clock, sleep=clock.sleep)

    assert len(tool.sent) == 1


DOUBT = {"idempotent": StepState.UNCERTAIN, "read_only": StepState.FAILED}


@pytest.mark.parametrize("effect", DOUBT)
def test_call_stays_in_doubt_when_one_of_its_answers_was_lost(db: Database, effect: str) -> None:
    run, clock = make_run(), SteppingClock()
    tool = Tool(TimeoutError(), ToolError("no"))

    with pytest.raises(ToolError):
        make_call(run_id=run.id, execute=tool, snapshot=harmless(effect), clock=clock, sleep=clock.sleep)

    assert states(run.id) == [DOUBT[effect]]


def restoring(**before: Any) -> Snapshot:
    read = {"tool": "shop.get", "arguments": {"item": "$args.item"}, **before}
    undo = {"tool": "shop.put", "argument_map": {"item": "$args.item", "price": "$before.price"}}
    order = {"tool": "shop.order", "effect": "reversible", "compensation": undo, "before": read}
    return make_snapshot({"tool": "shop.get", "effect": "read_only"}, {"tool": "shop.put"}, order)


class Prices:
    """A shelf whose price the tool changes, with a reader."""

    def __init__(self, price: int | Exception = 7) -> None:
        self.price = price
        self.reads: list[tuple[str, Mapping[str, Any]]] = []

    def read(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        self.reads.append((tool, dict(arguments)))
        if isinstance(self.price, Exception):
            raise self.price
        return {"price": self.price}

    def order(self, args: Mapping[str, Any], key: str | None) -> dict[str, Any]:
        self.price = 9
        return {"id": "o1"}


def order_from(prices: Prices, *, run_id: str, **fields: Any) -> CallResult:
    usual: dict[str, Any] = {"reader": prices.read, "snapshot": restoring()}
    return make_call(run_id=run_id, execute=prices.order, **{**usual, **fields})


def test_call_reads_the_state_before_and_after(db: Database) -> None:
    prices = Prices()

    step = order_from(prices, run_id=make_run().id).step

    assert prices.reads == [("shop.get", {"item": "book"})] * 2
    assert isinstance(step.handle, Handle)
    assert (step.handle.before, step.handle.values["$before.price"]) == (BeforeRead.FOUND, 7)
    assert step.handle.after is not None


BLIND: dict[str, tuple[dict[str, Any], str]] = {
    "read fails": ({}, "cannot capture the state before: shelf is gone"),
    "nobody reads": ({"reader": None}, "cannot capture the state before: nothing can run shop.get"),
}


@pytest.mark.parametrize("case", BLIND)
def test_call_is_refused_when_the_state_before_cannot_be_read(db: Database, case: str) -> None:
    fields, message = BLIND[case]
    run, prices = make_run(), Prices(ToolError("shelf is gone"))

    with pytest.raises(CallBlocked) as caught:
        order_from(prices, run_id=run.id, **fields)

    assert [violation.message for violation in caught.value.violations] == [message]
    assert isinstance(prices.price, ToolError)


@pytest.mark.parametrize("mode", list(Mode))
def test_call_proceeds_blind_where_the_manifest_says_so(db: Database, mode: Mode) -> None:
    run = make_run(mode=mode)

    step = order_from(Prices(ToolError("gone")), run_id=run.id, snapshot=restoring(on_missing="proceed")).step

    assert (step.state, step.unrecoverable) == (StepState.SUCCEEDED, "cannot capture the state before: gone")


def test_call_whose_state_after_cannot_be_read_still_succeeded(db: Database) -> None:
    prices = Prices()

    def order(args: Mapping[str, Any], key: str | None) -> dict[str, Any]:
        prices.price = ToolError("gone")
        return {"id": "o1"}

    step = make_call(run_id=make_run().id, execute=order, reader=prices.read, snapshot=restoring()).step

    assert isinstance(step.handle, Handle)
    assert (step.state, step.handle.after, step.unrecoverable) == (StepState.SUCCEEDED, None, None)


def test_call_shows_no_redacted_value_of_an_error(db: Database) -> None:
    run = make_run()
    snapshot = shop(audit={"redaction": ["$args.card"]})

    with pytest.raises(ToolError):
        make_call(
            run_id=run.id,
            execute=Tool(ToolError("card 4711-0815 declined")),
            args={**ARGS, "card": "4711-0815"},
            snapshot=snapshot,
        )

    assert list_steps(run.id)[0].error == "card [redacted] declined"
    assert "4711-0815" not in repr(list_events(run.id)) + repr(list_steps(run.id))


def test_call_shows_no_redacted_value_of_an_error_under_a_draft(db: Database) -> None:
    run = make_run(mode="observe")
    snapshot = shop(audit={"redaction": ["$args.card"]}, status="draft")

    with pytest.raises(ToolError):
        make_call(
            run_id=run.id,
            execute=Tool(ToolError("card 4711-0815 declined")),
            args={**ARGS, "card": "4711-0815"},
            snapshot=snapshot,
        )

    assert list_steps(run.id)[0].error == "card [redacted] declined"


DIE_IN_THE_TOOL = """
import os, sys, django; django.setup()
from tests.gateway.factories import make_call
make_call(run_id=sys.argv[1], execute=lambda args, key: os._exit(9))
"""


def test_call_whose_process_dies_in_the_tool_stays_intended(db: Database) -> None:
    run = make_run()

    child = subprocess.run([sys.executable, "-c", DIE_IN_THE_TOOL, run.id], env=db.env(), check=False)

    assert child.returncode == 9
    assert states(run.id) == [StepState.INTENDED]
    assert kinds(run.id) == ["opened", "intended"]


def fill_the_store() -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TRIGGER full BEFORE UPDATE ON ledger_run BEGIN SELECT RAISE(ABORT, 'full'); END")


def test_call_whose_failure_cannot_be_recorded_claims_nothing(sqlite_db: Database) -> None:
    run = make_run()

    def decline(args: Mapping[str, Any], key: str | None) -> None:
        fill_the_store()
        raise ToolError("declined")

    with pytest.raises(ToolError, match="declined") as caught:
        make_call(run_id=run.id, execute=decline)

    assert caught.value.__notes__ == [f"the outcome of step 0 of run {run.id} could not be recorded: full"]
    assert states(run.id) == [StepState.INTENDED]


def test_call_whose_success_cannot_be_recorded_gives_the_result_and_claims_nothing(sqlite_db: Database) -> None:
    run = make_run()

    def order(args: Mapping[str, Any], key: str | None) -> dict[str, str]:
        fill_the_store()
        return {"id": "o1"}

    called = make_call(run_id=run.id, execute=order)

    assert (called.result, called.state) == ({"id": "o1"}, StepState.INTENDED)
    assert called.notes == (f"the outcome of step 0 of run {run.id} could not be recorded: full",)
    assert states(run.id) == [StepState.INTENDED]


def test_call_that_a_person_settled_otherwise_meanwhile_is_disputed(db: Database) -> None:
    run = make_run()

    def order(args: Mapping[str, Any], key: str | None) -> dict[str, str]:
        with durable():
            resolve_step(run=lock_run(run.id), number=0, status="failed", note="not there", actor="dana", now=NOW)
        return {"id": "o1"}

    called = make_call(run_id=run.id, execute=order)

    assert called.result == {"id": "o1"}
    assert "could not be recorded" in called.notes[0]
    assert list_steps(run.id)[0].is_disputed


def test_call_that_is_interrupted_in_the_read_after_succeeded(db: Database) -> None:
    run, prices = make_run(), Prices()

    def order(args: Mapping[str, Any], key: str | None) -> dict[str, Any]:
        prices.price = 9
        return {"id": "o1"}

    def read(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        if prices.price == 9:
            raise KeyboardInterrupt
        return {"price": 7}

    with pytest.raises(KeyboardInterrupt):
        make_call(run_id=run.id, execute=order, reader=read, snapshot=restoring())

    assert states(run.id) == [StepState.SUCCEEDED]


def test_call_raises_on_the_end_of_an_iterator_as_itself(db: Database) -> None:
    run = make_run()

    with pytest.raises(StopIteration):
        make_call(run_id=run.id, execute=Tool(StopIteration()))

    assert states(run.id) == [StepState.FAILED]
