"""What lists of the journal are asked for: pages of runs, events and acts, each in a fixed number of queries.

Beside `queries`, which answer about one run or one step.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from ledger.core.statuses import ReadBack, RunState, StepState
from ledger.core.values import EventRecord, RunRecord
from ledger.models import Event, GovernanceEvent, Run, Step
from ledger.queries import ATTENTION, event_record, run_record
from reversi_site.kit.globs import MatchesGlob
from reversi_site.kit.keyset import Page, Place, keyset_page

DISPUTED = "disputed"
UNVERIFIED = ReadBack.UNVERIFIED.value


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs a list shows; `text` is looked for in what people know a run by.

    `actor`, `tenant`, `environment` and `tool` are globs; a run has a tool when a step of it called one.
    """

    principal: str | None = None
    state: RunState | None = None
    is_rolling_back: bool = False
    actor: str = ""
    tenant: str = ""
    environment: str = ""
    tool: str = ""
    since: datetime | None = None
    until: datetime | None = None
    text: str = ""
    needs_attention: bool = False


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run in a list: how many of its steps stand where, and what nobody has settled yet."""

    run: RunRecord
    steps: Mapping[StepState, int] = field(default_factory=dict)
    attention: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ActRecord:
    """One entry of the governance log."""

    seq: int
    kind: str
    at: str
    actor: str
    data: Mapping[str, Any]


def page_runs(*, wanted: RunFilter, place: Place | None = None, size: int = 50) -> Page[RunLine]:
    """Return a page of runs, newest first: two queries."""
    rows = keyset_page(_filtered(wanted), columns=("opened_at", "id"), is_descending=True, place=place, size=size)
    counts = _step_counts([row.id for row in rows.items])
    return rows.of(lambda row: _run_line(row, counts[row.id]))


def count_runs_needing_attention(*, principal: str | None, limit: int) -> int:
    """Return how many runs have a step that nobody settled, counted up to `limit`."""
    rows = _filtered(RunFilter(principal=principal, needs_attention=True))
    return rows.order_by()[:limit].count()


def page_run_records(*, wanted: RunFilter, place: Place | None = None, size: int = 50) -> Page[RunRecord]:
    """Return a page of runs without their steps, newest first: one query."""
    rows = keyset_page(_filtered(wanted), columns=("opened_at", "id"), is_descending=True, place=place, size=size)
    return rows.of(run_record)


def _filtered(wanted: RunFilter) -> QuerySet[Run]:
    rows = Run.objects.filter(**_exact(wanted))
    for column in ("actor", "tenant", "environment"):
        if glob := getattr(wanted, column):
            rows = rows.filter(MatchesGlob(column, glob))
    if wanted.tool:
        rows = rows.filter(Exists(Step.objects.filter(MatchesGlob("tool", wanted.tool), run=OuterRef("pk"))))
    if wanted.needs_attention:
        rows = rows.filter(Exists(Step.objects.filter(needs_attention(), run=OuterRef("pk"))))
    return rows.filter(_holds(wanted.text)) if wanted.text else rows


def _exact(wanted: RunFilter) -> dict[str, object]:
    named = {
        "principal": wanted.principal,
        "state": wanted.state,
        "is_rolling_back": True if wanted.is_rolling_back else None,
        "opened_at__gte": wanted.since,
        "opened_at__lt": wanted.until,
    }
    return {name: value for name, value in named.items() if value is not None}


def needs_attention() -> Q:
    """Return the condition on steps that a person must look at."""
    return (
        Q(state__in=ATTENTION)
        | Q(is_disputed=True)
        | Q(state=StepState.COMPENSATED.value, read_back=ReadBack.UNVERIFIED.value)
    )


def _holds(text: str) -> Q:
    inside = Step.objects.filter(Q(tool__icontains=text) | Q(summary__icontains=text), run=OuterRef("pk"))
    names = ("id", "principal", "actor", "tenant", "environment", "reason")
    condition = Q(Exists(inside))
    for name in names:
        condition |= Q(**{f"{name}__icontains": text})
    return condition


StepCount = tuple[str, bool, str, int]


def _step_counts(run_ids: Sequence[str]) -> Mapping[str, list[StepCount]]:
    rows = Step.objects.filter(run_id__in=run_ids).order_by()
    grouped = rows.values_list("run_id", "state", "is_disputed", "read_back").annotate(count=Count("pk"))
    counts: dict[str, list[StepCount]] = defaultdict(list)
    for run_id, state, is_disputed, read_back, count in grouped:
        counts[run_id].append((state, is_disputed, read_back, count))
    return counts


def _run_line(row: Run, counts: Sequence[StepCount]) -> RunLine:
    steps: dict[StepState, int] = defaultdict(int)
    attention: dict[str, int] = defaultdict(int)
    for state, is_disputed, read_back, count in counts:
        steps[StepState(state)] += count
        if state in ATTENTION:
            attention[state] += count
        if is_disputed:
            attention[DISPUTED] += count
        if state == StepState.COMPENSATED and read_back == UNVERIFIED:
            attention[UNVERIFIED] += count
    return RunLine(run_record(row), dict(steps), dict(attention))


def list_run_wide_events(run_id: str) -> Sequence[EventRecord]:
    """Return the events that are about no step, in order: openings, blocked calls, rollbacks."""
    return _events(Event.objects.filter(run_id=run_id, step__isnull=True))


def list_step_events(run_id: str, number: int) -> Sequence[EventRecord]:
    """Return the events about one step, in order."""
    return _events(Event.objects.filter(run_id=run_id, step=number))


def page_events(run_id: str, *, first: int, size: int) -> Sequence[EventRecord]:
    """Return at most `size` of the run's events, from the one numbered `first` on."""
    return _events(Event.objects.filter(run_id=run_id, seq__gte=first, seq__lt=first + size))


def page_journal(*, run_id: str, place: Place | None = None, size: int = 50) -> Page[EventRecord]:
    """Return a page of the run's events in order, data included where it is still kept: one query."""
    rows = Event.objects.filter(run_id=run_id).select_related("payload")
    return keyset_page(rows, columns=("seq",), is_descending=False, place=place, size=size).of(event_record)


def _events(rows: QuerySet[Event]) -> list[EventRecord]:
    return [event_record(row) for row in rows.order_by("seq").select_related("payload")]


def page_acts(*, place: Place | None = None, size: int = 50) -> Page[ActRecord]:
    """Return a page of the governance log, newest first."""
    rows = GovernanceEvent.objects.all()
    return keyset_page(rows, columns=("seq",), is_descending=True, place=place, size=size).of(_act_record)


def _act_record(row: GovernanceEvent) -> ActRecord:
    return ActRecord(row.seq, row.kind, row.at, row.actor, json.loads(bytes(row.data)))
