"""A run's steps and what happened around them, in one order: what a person reads first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ledger.core.chain import timestamp
from ledger.core.values import EventRecord, StepRecord
from reversi_site.console.words import KIND_WORDS, event_text, step_marks
from rollback.core.actions import Action, Kind
from rollback.core.plan import Plan

CANNOT_RUN = "nothing can run its undo"


@dataclass(frozen=True, slots=True)
class StepRow:
    """A call, with what a rollback would do about it."""

    step: StepRecord
    action: Action
    marks: Sequence[tuple[str, str]]
    verdict: str
    tone: str


@dataclass(frozen=True, slots=True)
class HappeningRow:
    """Something about the whole run: it was opened, a call was blocked, a rollback began."""

    event: EventRecord
    text: str
    details: Sequence[str]


Row = StepRow | HappeningRow


def timeline_of(
    steps: Sequence[StepRecord], events: Sequence[EventRecord], plan: Plan, *, first: int, size: int
) -> list[Row]:
    """Return the rows of the steps from number `first` on, with what happened between them, oldest first."""
    actions = {action.step: action for action in plan.actions}
    shown = steps[first : first + size]
    starts = timestamp(shown[0].intended_at) if first and shown else ""
    ends = timestamp(steps[first + size].intended_at) if first + size < len(steps) else None
    rows: list[tuple[str, int, Row]] = [
        (timestamp(step.intended_at), 1, step_row(step, actions[step.number], plan)) for step in shown
    ]
    rows += [
        (event.at, 0, happening_row(event))
        for event in events
        if event.at >= starts and (ends is None or event.at < ends)
    ]
    return [row for _, _, row in sorted(rows, key=lambda item: item[:2])]


def step_row(step: StepRecord, action: Action, plan: Plan) -> StepRow:
    """Return a step with what the plan says about it."""
    return StepRow(step, action, step_marks(step), verdict(action, plan), tone(action, plan))


def verdict(action: Action, plan: Plan) -> str:
    """Say in a few words what a rollback would do about a step."""
    if action.step in plan.cannot_run and action.kind is Kind.COMPENSATE:
        return CANNOT_RUN
    if action.kind is Kind.COMPENSATE and action.needs_approval:
        return "needs an approval"
    return KIND_WORDS[action.kind]


def tone(action: Action, plan: Plan) -> str:
    """Return the colour of what a rollback would do."""
    match action.kind:
        case Kind.COMPENSATE if action.step in plan.cannot_run:
            return "bad"
        case Kind.COMPENSATE:
            return "warn" if action.needs_approval else "good"
        case Kind.SKIP:
            return "quiet"
        case Kind.UNRESOLVED:
            return "doubt"
        case Kind.DEFER:
            return "warn"
        case _:
            return "bad"


def happening_row(event: EventRecord) -> HappeningRow:
    """Return an event about the whole run."""
    return HappeningRow(event, event_text(event.kind), tuple(_details(event)))


def _details(event: EventRecord) -> Iterator[str]:
    data: Mapping[str, object] = event.data or {}
    match event.kind:
        case "blocked":
            yield str(data.get("tool", "purged"))
            yield from (violation["message"] for violation in (event.data or {}).get("violations", ()))
        case "rollback_finished":
            yield "complete" if data.get("complete") else "not complete"
        case _:
            return


def plan_counts(plan: Plan) -> list[tuple[str, str, int]]:
    """Return how many steps a rollback would treat how, in the order in which a person wants to know."""
    actions = [(verdict(action, plan), tone(action, plan)) for action in plan.actions]
    order = ("good", "warn", "doubt", "bad", "quiet")
    counted = Counter(actions)
    return [(*found, counted[found]) for found in sorted(counted, key=lambda pair: order.index(pair[1]))]
