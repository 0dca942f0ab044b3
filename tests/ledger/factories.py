"""Make runs, intents and steps for tests of the journal; every argument is by keyword."""

from datetime import UTC, datetime, timedelta
from typing import Any

from ledger.core.handles import Handle
from ledger.core.statuses import SettledBy, StepState
from ledger.core.values import Intent, Outcome, RunRecord, StepRecord
from ledger.operations.journal import lock_run
from ledger.operations.runs import open_run
from ledger.operations.steps import record_intent, record_outcome
from reversi_site.kit.transactions import durable

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def make_run(**fields: Any) -> RunRecord:
    run, _ = open_run(**{"principal": "agent-a", "now": NOW, **fields})
    return run


def make_intent(**fields: Any) -> Intent:
    usual: dict[str, Any] = {
        "tool": "shop.order",
        "args": b'{"item":"book","pin":"4711-0815"}',
        "effect": "reversible",
        "upstream": "shop",
        "manifest_checksum": "c" * 64,
        "snapshot": {"shop.order": "c" * 64},
        "summary": "order a book",
        "depends_on": (),
        "requires_steps": (),
        "call_key": None,
        "idempotency_key": None,
        "ledger_id": None,
        "timeout_ms": 1000,
        "observed_by": "gateway",
        "handle": Handle({"$args.item": "book"}),
    }
    return Intent(**{**usual, **fields})


def intend(*, run_id: str, now: datetime = NOW, **fields: Any) -> StepRecord:
    with durable():
        return record_intent(run=lock_run(run_id), intent=make_intent(**fields), actor="agent-a", now=now)


def settle(*, run_id: str, number: int, state: StepState = StepState.SUCCEEDED, **fields: Any) -> StepRecord:
    usual: dict[str, Any] = {"by": SettledBy.CALLER, "actor": "agent-a", "now": NOW + timedelta(seconds=1)}
    outcome = fields.pop("outcome", Outcome(state))
    return record_outcome(run_id=run_id, number=number, outcome=outcome, **{**usual, **fields})


def make_step(*, run_id: str, state: StepState = StepState.SUCCEEDED, **fields: Any) -> StepRecord:
    step = intend(run_id=run_id, **fields)
    return step if state is StepState.INTENDED else settle(run_id=run_id, number=step.number, state=state)
