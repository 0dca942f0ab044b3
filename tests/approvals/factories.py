"""Begin and complete calls in a shop; every argument is by keyword."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from approvals.core.errors import CallBlocked
from approvals.operations.calls import Begun, begin_call, complete_call
from ledger.core.values import EventRecord, RunRecord, StepRecord
from ledger.operations.runs import open_run
from ledger.queries import list_events
from manifests_registry.core.snapshot import Snapshot
from tests.manifests_registry.factories import shop

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(seconds=1)
PRINCIPAL = "agent-a"
ARGS = {"item": "book", "want": "gone"}


def make_run(**fields: Any) -> RunRecord:
    run, _ = open_run(**{"principal": PRINCIPAL, "now": NOW, "scope": ("shop:*",), **fields})
    return run


def begin(*, run_id: str, snapshot: Snapshot | None = None, **fields: Any) -> Begun:
    usual: dict[str, Any] = {
        "principal": PRINCIPAL,
        "tool": "shop.order",
        "args": ARGS,
        "now": NOW,
        "observed_by": "gateway",
        "snapshot": shop() if snapshot is None else snapshot,
    }
    return begin_call(run_id=run_id, **{**usual, **fields})


def complete(*, run_id: str, number: int, status: str = "succeeded", **fields: Any) -> StepRecord:
    usual: dict[str, Any] = {"actor": PRINCIPAL, "now": LATER, "result": {"id": "o1"}}
    return complete_call(run_id=run_id, number=number, status=status, **{**usual, **fields})


def succeed(*, run_id: str, **fields: Any) -> StepRecord:
    begun = begin(run_id=run_id, **fields)
    return complete(run_id=run_id, number=begun.step.number)


def codes(blocked: CallBlocked) -> list[str]:
    return [violation.code.value for violation in blocked.violations]


def kinds(run_id: str) -> list[str]:
    return [event.kind for event in list_events(run_id)]


def last_event(run_id: str) -> EventRecord:
    events: Sequence[EventRecord] = list_events(run_id)
    return events[-1]
