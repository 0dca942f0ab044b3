"""One step: what is known of it, and the form in which a person settles it."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.http import HttpResponse

from approvals.core.people import Act
from ledger.core.errors import StepNotFound
from ledger.core.values import RunRecord, StepRecord
from ledger.overview import list_step_events
from manifests_registry.core.errors import DocumentAltered, DocumentNotFound
from manifests_registry.queries import get_document
from reversi_sdk.model import Manifest
from reversi_site.console.forms import ResolveForm
from reversi_site.console.pages.plans import PlanLine, plan_lines
from reversi_site.console.pages.runs import READERS, readable_run, run_context
from reversi_site.console.reach import deployment_tools
from reversi_site.console.refusals import refusal_of
from reversi_site.console.settling import ways_to_settle
from reversi_site.console.visit import Visit, address, page
from reversi_site.console.words import step_marks, words
from reversi_site.kit.transactions import snapshot
from rollback.operations.resolution import resolve
from rollback.queries import load_steps


@page(*READERS)
def step(visit: Visit, run_id: str, number: int) -> HttpResponse:
    """Show everything that is known of a step."""
    run = readable_run(visit, run_id)
    record, line = _step_of(visit, run, number)
    return visit.show(
        "step",
        title=f"Step {number}",
        **_context(visit, run, record, line),
        manifest=_manifest(record),
        events=list_step_events(run.id, number),
    )


def _step_of(visit: Visit, run: RunRecord, number: int) -> tuple[StepRecord, PlanLine]:
    with snapshot():
        loaded = load_steps(run.id)
    record = next((found.record for found in loaded.steps if found.number == number), None)
    if record is None:
        raise StepNotFound(run.id, number)
    plan = loaded.plan(now=visit.now, can_run=deployment_tools().can_run)
    return record, next(line for line in plan_lines(plan) if line.action.step == number)


def _context(visit: Visit, run: RunRecord, record: StepRecord, line: PlanLine) -> dict[str, Any]:
    context = dict(run_context(visit, run, "step"))
    ways = ways_to_settle(record, line.action.kind)
    return context | {"step": record, "line": line, "marks": step_marks(record), "ways": ways}


def _manifest(record: StepRecord) -> Manifest | str | None:
    if record.manifest_checksum is None:
        return None
    try:
        return get_document(record.manifest_checksum)
    except (DocumentAltered, DocumentNotFound) as error:
        return str(error)


@page(Act.RESOLVE)
def resolve_step(visit: Visit, run_id: str, number: int) -> HttpResponse:
    """Settle a step by a person's word."""
    run = readable_run(visit, run_id)
    record, line = _step_of(visit, run, number)
    form = ResolveForm(visit.sent, ways=ways_to_settle(record, line.action.kind))
    refused = None
    if visit.is_sent and form.is_valid():
        refused = refusal_of(lambda: _settle(visit, run, number, form))
        if refused is None:
            said = f"Step {number} is now {words(form.cleaned_data['status'])}."
            return visit.done(said, "step", run_id=run.id, number=number)
    status = HTTPStatus.CONFLICT if refused else HTTPStatus.BAD_REQUEST if visit.is_sent else HTTPStatus.OK
    context = _context(visit, run, record, line)
    crumbs = [("Runs", address("runs")), (run.id, address("run", run_id=run.id))]
    crumbs.append((f"Step {number}", address("step", run_id=run.id, number=number)))
    shown = context | {"crumbs": crumbs, "form": form, "refused": refused}
    return visit.show("resolve", title="Settle by hand", status=status, **shown)


def _settle(visit: Visit, run: RunRecord, number: int, form: ResolveForm) -> None:
    resolve(
        run_id=run.id,
        number=number,
        status=form.cleaned_data["status"],
        note=form.cleaned_data["note"],
        actor=visit.caller.username,
        tools=deployment_tools(),
        result=form.cleaned_data["result"],
    )
