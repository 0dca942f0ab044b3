"""Make runs in a shop through the real gate and journal; every argument is by keyword."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from gateway.operations.calls import call
from ledger.core.statuses import StepState
from ledger.core.values import StepRecord
from ledger.operations.runs import open_run
from ledger.queries import get_step, list_events, list_steps
from manifests_registry.core.snapshot import Snapshot
from reversi_sdk.errors import EffectUncertainError
from rollback.core.backoff import Retrying
from rollback.core.options import RollbackOptions
from rollback.core.ports import Tools
from rollback.core.report import Report
from rollback.operations.execution import run_foreground
from tests.manifests_registry.factories import make_snapshot
from tests.rollback.downstream import Downstream

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
AGENT = "agent-a"
OPERATOR = "operator"
RUN = "run_v"
READ_BACK = {
    "tool": "shop.get",
    "arguments": {"id": "$result.id"},
    "expect": {"state": "gone"},
    "retries": 2,
    "backoff_ms": 1000,
}


class HasTools(Protocol):
    """A world that tools reach."""

    @property
    def tools(self) -> Tools:
        """What a rollback gets."""


@dataclass
class Ticking:
    """A clock that moves on by a second each time it is asked."""

    at: datetime = START

    def now(self) -> datetime:
        self.at += timedelta(seconds=1)
        return self.at


@dataclass
class Naps:
    """Sleeps that take no time."""

    seconds: list[float] = field(default_factory=list)

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def shop(
    *,
    cancel: Mapping[str, Any] | None = None,
    is_read_back: bool = False,
    more: Sequence[Mapping[str, Any]] = (),
    **undo: Any,
) -> Snapshot:
    """A shop whose orders are cancelled by a tool that is neither idempotent nor keyed, unless said otherwise."""
    verification = {"verification": READ_BACK} if is_read_back else {}
    usual = {"effect": "irreversible", "compensation_only": True}
    return make_snapshot(
        {"tool": "shop.get", "effect": "read_only"},
        {"tool": "shop.cancel", **(cancel or usual)},
        {
            "tool": "shop.order",
            "effect": "compensable",
            "compensation": {
                "tool": "shop.cancel",
                "argument_map": {"id": "$result.id"},
                "residue": ["the order number stays taken"],
                **verification,
                **undo,
            },
        },
        {"tool": "shop.tag", "effect": "idempotent"},
        *more,
    )


IDEMPOTENT: Mapping[str, Any] = {"effect": "idempotent"}


def make_run(*, run_id: str = RUN, **fields: Any) -> str:
    run, _ = open_run(**{"run_id": run_id, "principal": AGENT, "now": START, "scope": ("shop:*",), **fields})
    return run.id


def make_call(
    *,
    downstream: Downstream,
    snapshot: Snapshot,
    tool: str = "shop.order",
    run_id: str = RUN,
    thing: str | None = None,
    args: Mapping[str, Any] | None = None,
    **fields: Any,
) -> StepRecord:
    """Make one call of the agent; it places a thing in the world."""
    name = thing if thing is not None else f"o{len(list_steps(run_id))}"

    def execute(arguments: dict[str, Any], key: str | None) -> dict[str, Any]:
        return downstream.place(name)

    usual: dict[str, Any] = {"execute": execute, "principal": AGENT, "snapshot": snapshot, "clock": Ticking()}
    return call(run_id, tool, args or {"item": name}, **{**usual, **fields}).step


def lose_call(*, snapshot: Snapshot, run_id: str = RUN) -> int:
    """Make a call whose answer is lost, and return its step."""

    def execute(arguments: dict[str, Any], key: str | None) -> None:
        raise EffectUncertainError("the connection was lost")

    number = len(list_steps(run_id))
    try:
        call(run_id, "shop.order", {"item": "x"}, execute=execute, principal=AGENT, snapshot=snapshot, clock=Ticking())
    except EffectUncertainError:
        return number
    raise AssertionError("the call must be raised on")


def order(*, downstream: Downstream, snapshot: Snapshot, count: int = 1, **fields: Any) -> list[int]:
    """Make some orders and return their steps."""
    return [make_call(downstream=downstream, snapshot=snapshot, **fields).number for _ in range(count)]


def roll_back(
    *, downstream: HasTools, run_id: str = RUN, attempts: int = 1, naps: Naps | None = None, **fields: Any
) -> Report:
    options = {name: fields.pop(name) for name in list(fields) if name in RollbackOptions.__dataclass_fields__}
    usual: dict[str, Any] = {
        "tools": downstream.tools,
        "actor": OPERATOR,
        "clock": Ticking(START + timedelta(hours=1)),
        "sleep": naps or Naps(),
        "chance": lambda: 1.0,
        "options": RollbackOptions(retrying=Retrying(attempts=attempts), **options),
    }
    return run_foreground(run_id=run_id, **{**usual, **fields})


def state_of(number: int = 0, *, run_id: str = RUN) -> StepState:
    return get_step(run_id, number).state


def kinds(run_id: str = RUN) -> list[str]:
    return [event.kind for event in list_events(run_id)]


def kinds_of(number: int, *, run_id: str = RUN) -> list[str]:
    return [event.kind for event in list_events(run_id) if event.step == number]
