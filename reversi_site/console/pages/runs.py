"""Runs: the list, one run's timeline, its events, and closing it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict

from approvals.core.people import Act, may, may_on_run
from approvals.operations.runs import close_run_for
from approvals.queries import get_run_for
from ledger.core.errors import RunNotFound
from ledger.core.statuses import RunState
from ledger.core.values import RUN_ID, RunRecord
from ledger.overview import RunFilter, list_run_wide_events, page_events, page_runs
from ledger.queries import check_run_chain, get_run
from reversi_site.console.frame import owner_filter
from reversi_site.console.paging import as_query, read_place
from reversi_site.console.reach import deployment_tools
from reversi_site.console.refusals import refusal_of
from reversi_site.console.timeline import plan_counts, timeline_of
from reversi_site.console.visit import Visit, address, page
from reversi_site.kit.transactions import snapshot
from rollback.queries import find_live_job, load_steps

RUNS_SHOWN = 50
STEPS_SHOWN = 100
EVENTS_SHOWN = 200
TEXT = 200
READERS = (Act.READ_ANY_RUN, Act.READ_OWN_RUN)
STATES = ("open", "closed", "rolling_back")


@page(*READERS)
def run_list(visit: Visit) -> HttpResponse:
    """List runs, newest first, filtered as asked; the id of a run as the text leads to the run itself."""
    asked = visit.request.GET
    found = _named_run(visit, asked.get("q", "").strip())
    if found is not None:
        return visit.go("run", run_id=found.id)
    wanted = _read_filter(asked, owner_filter(visit.caller))
    runs = page_runs(wanted=wanted, place=read_place(asked, _place_values), size=RUNS_SHOWN)
    kept = {name: asked[name] for name in ("q", "state", "actor", "attention") if asked.get(name)}
    return visit.show(
        "runs",
        title="Runs",
        runs=runs.items,
        asked=asked,
        states=STATES,
        is_filtered=bool(kept),
        older=as_query(runs.next, kept),
        newer=as_query(runs.previous, kept),
    )


def _named_run(visit: Visit, text: str) -> RunRecord | None:
    if not text.startswith("run_") or not RUN_ID.fullmatch(text):
        return None
    try:
        run = get_run(text)
    except RunNotFound:
        return None
    return run if may_on_run(visit.caller, run, own=Act.READ_OWN_RUN, others=Act.READ_ANY_RUN) else None


def _read_filter(asked: QueryDict, principal: str | None) -> RunFilter:
    state = asked.get("state", "")
    return RunFilter(
        principal=principal,
        state=RunState(state) if state in list(RunState) else None,
        is_rolling_back=state == "rolling_back",
        actor=asked.get("actor", "").strip()[:TEXT],
        text=asked.get("q", "").strip()[:TEXT],
        needs_attention=asked.get("attention") == "1",
    )


def _place_values(parts: list[str]) -> tuple[Any, ...]:
    opened_at, run_id = parts
    return datetime.fromisoformat(opened_at), run_id


def readable_run(visit: Visit, run_id: str) -> RunRecord:
    """Return a run that the caller may read; raises ForeignRun for somebody else's."""
    return get_run_for(caller=visit.caller, run_id=run_id, own=Act.READ_OWN_RUN, others=Act.READ_ANY_RUN)


def run_context(visit: Visit, run: RunRecord, tab: str) -> Mapping[str, Any]:
    """Return what stands at the head of every page about a run: facts, and the buttons that the caller may press."""
    can_close = may_on_run(visit.caller, run, own=Act.CLOSE_OWN_RUN, others=Act.CLOSE_ANY_RUN)
    return {
        "run": run,
        "tab": tab,
        "crumbs": [("Runs", address("runs")), *([] if tab == "timeline" else [_crumb(run)])],
        "live_job": find_live_job(run.id),
        "can_roll_back": may(visit.caller, Act.ROLL_BACK),
        "can_verify": may(visit.caller, Act.VERIFY),
        "can_resolve": may(visit.caller, Act.RESOLVE),
        "can_close": can_close and run.state is RunState.OPEN,
    }


def _crumb(run: RunRecord) -> tuple[str, str]:
    return run.id, address("run", run_id=run.id)


@page(*READERS)
def run_timeline(visit: Visit, run_id: str) -> HttpResponse:
    """Show what the run did, and what can be undone of it."""
    run = readable_run(visit, run_id)
    with snapshot():
        loaded, events = load_steps(run_id), list_run_wide_events(run_id)
    plan = loaded.plan(now=visit.now, can_run=deployment_tools().can_run)
    first = _number(visit.request, "from")
    steps = [step.record for step in loaded.steps]
    rows = timeline_of(steps, events, plan, first=first, size=STEPS_SHOWN)
    return visit.show(
        "run_timeline",
        title=run.id,
        **run_context(visit, run, "timeline"),
        rows=rows,
        plan=plan,
        counts=plan_counts(plan),
        total=len(steps),
        first=first,
        last=min(first + STEPS_SHOWN, len(steps)) - 1,
        earlier=max(first - STEPS_SHOWN, 0) if first else None,
        later=first + STEPS_SHOWN if first + STEPS_SHOWN < len(steps) else None,
    )


@page(*READERS)
def run_events(visit: Visit, run_id: str) -> HttpResponse:
    """Show the run's journal, entry by entry, and whether its chain holds."""
    run = readable_run(visit, run_id)
    first = _number(visit.request, "from")
    events = page_events(run_id, first=first, size=EVENTS_SHOWN)
    return visit.show(
        "run_events",
        title="Events",
        **run_context(visit, run, "events"),
        events=events,
        chain=check_run_chain(run_id) if "check" in visit.request.GET else None,
        earlier=max(first - EVENTS_SHOWN, 0) if first else None,
        later=first + EVENTS_SHOWN if len(events) == EVENTS_SHOWN else None,
    )


def _number(request: HttpRequest, name: str) -> int:
    text = request.GET.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 9 else 0


@page(Act.CLOSE_ANY_RUN, Act.CLOSE_OWN_RUN)
def close_run(visit: Visit, run_id: str) -> HttpResponse:
    """Close a run: it takes no more calls."""
    refused = refusal_of(lambda: close_run_for(caller=visit.caller, run_id=run_id, now=visit.now))
    if refused is not None:
        return visit.refused(refused, "run", run_id=run_id)
    return visit.done("The run is closed. It can still be planned and rolled back.", "run", run_id=run_id)
