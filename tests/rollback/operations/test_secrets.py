"""Values that are never shown stay out of plans, reports, rows and events, whatever undo and reader say (D14)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from gateway.operations.calls import call
from ledger.queries import list_events, list_steps
from manifests_registry.core.snapshot import Snapshot
from reversi_sdk.errors import ToolError
from rollback.core.ports import Answer, ReadFailed, Tools, UndoAnswer, UndoCall, UndoFailed, Undone, UndoUnknown
from rollback.queries import get_plan, get_report
from tests.databases import Database
from tests.manifests_registry.factories import make_snapshot
from tests.rollback.journal import AGENT, RUN, START, Ticking, make_run, roll_back

SECRET = "tok_4242_do_not_show"


@dataclass(frozen=True)
class Place:
    """Where a call holds its secret, and why nobody may see it there."""

    args: Mapping[str, Any]
    argument: Any
    name: str = "card"
    redaction: Sequence[str] = ()
    path: str = "card"


PLACES: Mapping[str, Place] = {
    "redacted path": Place({"card": SECRET}, "$args.card", redaction=("$args.card",)),
    "named so by the call": Place({"api_token": SECRET}, "$args.api_token"),
    "named so inside a value": Place({"card": {"password": SECRET}}, "$args.card"),
    "named so by the undo": Place({"plain": SECRET}, "$args.plain", name="password"),
    "named so inside an argument": Place({"plain": SECRET}, {"api_key": "$args.plain"}),
    "named so by the answer": Place({"plain": SECRET}, "$args.plain", path="card.token"),
}


def snapshot_of(place: Place) -> Snapshot:
    return make_snapshot(
        {"tool": "pay.get", "effect": "read_only"},
        {"tool": "pay.refund", "effect": "idempotent"},
        {
            "tool": "pay.charge",
            "effect": "compensable",
            "audit": {"redaction": list(place.redaction)},
            "compensation": {
                "tool": "pay.refund",
                "argument_map": {place.name: place.argument},
                "verification": {
                    "tool": "pay.get",
                    "arguments": {place.name: place.argument},
                    "expect": {place.path: place.argument},
                    "retries": 1,
                },
            },
        },
    )


class Talkative:
    """Says what it was called with, in every kind of answer in turn."""

    def __init__(self) -> None:
        self.answers: list[UndoAnswer] = [UndoFailed(SECRET), UndoUnknown(SECRET), Undone(), Undone()]

    @property
    def tools(self) -> Tools:
        return Tools(self, self)

    def can_run(self, tool: str) -> bool:
        return True

    def honours_key(self, tool: str) -> bool:
        return True

    def compensate(self, call: UndoCall) -> UndoAnswer:
        return self.answers.pop(0)

    def can_read(self, tool: str) -> bool:
        return True

    def read(self, tool: str, arguments: Mapping[str, Any], *, timeout_ms: int) -> Answer | ReadFailed:
        if len(self.answers) > 1:
            return ReadFailed(f"no {SECRET}")
        wrong = f"not {SECRET}"
        return Answer({"card": {"token": wrong, "password": wrong, "api_key": wrong}})


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_what_is_never_shown_leaves_by_no_answer(db: Database, place: Place) -> None:
    def refuse(args: Any, key: str | None) -> None:
        raise ToolError(f"declined {SECRET}")

    make_run(scope=("*",))
    usual: dict[str, Any] = {"principal": AGENT, "snapshot": snapshot_of(place), "clock": Ticking()}
    call(RUN, "pay.charge", place.args, execute=lambda args, key: None, **usual)
    with pytest.raises(ToolError):
        call(RUN, "pay.charge", place.args, execute=refuse, **usual)
    world = Talkative()
    shown: list[Any] = [get_plan(run_id=RUN, now=START).to_json()]
    while world.answers:
        shown.append(roll_back(downstream=world).to_json())
        shown.append(get_plan(run_id=RUN, now=START).to_json())
    shown.append(get_report(run_id=RUN, now=START).to_json())
    texts = [*map(repr, shown), *map(repr, list_events(RUN)), *(repr((s.error, s.summary)) for s in list_steps(RUN))]
    assert not [text for text in texts if SECRET in text]
    assert any("[redacted]" in text for text in texts)
