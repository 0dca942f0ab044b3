"""Runs as text: a line each in a list, a timeline of steps for one, and what a person's word made of a step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from reversi_site.cli.output import columns, counted, shown_time

if TYPE_CHECKING:
    from ledger.core.values import EventRecord, RunRecord, StepRecord


def run_lines(runs: Sequence[RunRecord]) -> list[str]:
    """Return one line per run."""
    return columns([_run_cells(run) for run in runs])


def _run_cells(run: RunRecord) -> list[str]:
    state = "rolling back" if run.is_rolling_back else run.state.value
    return [run.id, state, run.mode.value, counted(run.next_step, "step"), shown_time(run.opened_at) or "", run.agent]


def timeline_lines(run: RunRecord, steps: Sequence[StepRecord], events: Sequence[EventRecord]) -> Iterator[str]:
    """Yield the run's head, then its steps and the calls that were blocked, in the order in which they happened."""
    yield from run_lines([run])
    if run.reason:
        yield f"  reason: {run.reason}"
    by_number = {step.number: step for step in steps}
    rows = [row for event in events for row in _event_rows(event, by_number)]
    details = [row[-1] for row in rows]
    for line, extra in zip(columns([row[:-1] for row in rows]), details, strict=True):
        yield f"  {line}"
        if extra:
            yield f"          {extra}"
    if not rows:
        yield "  no calls yet"


def _event_rows(event: EventRecord, steps: dict[int, StepRecord]) -> Iterator[list[str]]:
    if event.kind == "intended" and event.step in steps:
        step = steps[event.step]
        yield [
            event.at[11:19],
            f"step {step.number}",
            step.tool,
            step.state.value,
            step.summary,
            "; ".join(_marks(step)),
        ]
    elif event.kind == "blocked":
        data = event.data or {}
        why = "; ".join(violation["message"] for violation in data.get("violations", ()))
        yield [event.at[11:19], "blocked", data.get("tool", "purged"), "", why, ""]


def _marks(step: StepRecord) -> Iterator[str]:
    """Yield what a person must know about a step beyond its state."""
    if step.error:
        yield step.error
    if step.unrecoverable:
        yield f"cannot be undone: {step.unrecoverable}"
    if step.is_disputed:
        yield "its outcome is disputed: resolve it again"
    if step.is_undo_outcome_unknown:
        yield "nobody knows whether its undo happened"
    if step.is_by_hand:
        yield "undone by hand"
    if step.read_back == "verified":
        yield "undo read back"
    if step.read_back == "unverified" and step.state == "compensated":
        yield "undone, not read back yet"


def resolved_lines(step: StepRecord) -> Iterator[str]:
    """Yield where a resolved step now stands, and what is still open about it."""
    yield f"step {step.number} is now {step.state.value}"
    yield f"  {step.summary}"
    if step.unrecoverable:
        yield f"it cannot be undone: {step.unrecoverable}"
    if step.state == "compensated" and step.read_back == "unverified":
        yield f"not read back: pass --reader-cmd, or run `reversi verify {step.run_id}` later"
