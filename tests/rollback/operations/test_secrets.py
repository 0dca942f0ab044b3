"""Values that a manifest redacts stay out of reports, rows and events, whatever the undo and the reader say (D14)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.operations.calls import call
from ledger.queries import list_events, list_steps
from rollback.core.ports import Answer, ReadFailed, Tools, UndoAnswer, UndoCall, UndoFailed, Undone, UndoUnknown
from rollback.queries import get_report
from tests.databases import Database
from tests.manifests_registry.factories import make_snapshot
from tests.rollback.journal import AGENT, RUN, START, Ticking, make_run, roll_back

SECRET = "tok_4242_do_not_show"
SNAPSHOT = make_snapshot(
    {"tool": "pay.get", "effect": "read_only"},
    {"tool": "pay.refund", "effect": "idempotent"},
    {
        "tool": "pay.charge",
        "effect": "compensable",
        "audit": {"redaction": ["$args.card"]},
        "compensation": {
            "tool": "pay.refund",
            "argument_map": {"card": "$args.card"},
            "verification": {
                "tool": "pay.get",
                "arguments": {"card": "$args.card"},
                "expect": {"card": "$args.card"},
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
        return Answer({"card": f"not {SECRET}"}) if len(self.answers) == 1 else ReadFailed(f"no {SECRET}")


def test_redacted_values_leave_by_no_answer(db: Database) -> None:
    make_run(scope=("*",))
    call(
        RUN,
        "pay.charge",
        {"card": SECRET},
        execute=lambda args, key: None,
        principal=AGENT,
        snapshot=SNAPSHOT,
        clock=Ticking(),
    )
    world = Talkative()
    shown = []
    while world.answers:
        shown.append(roll_back(downstream=world).to_json())
    shown.append(get_report(run_id=RUN, now=START).to_json())
    texts = [*map(repr, shown), *map(repr, list_events(RUN)), *(repr((s.error, s.summary)) for s in list_steps(RUN))]
    assert not [text for text in texts if SECRET in text]
    assert any("[redacted]" in text for text in texts)
