"""Plans, and the rollback that executes exactly the plan that was looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus

from django.http import HttpResponse, QueryDict

from approvals.core.people import Act
from ledger.core.values import RunRecord
from reversi_site.console.forms import RollbackForm
from reversi_site.console.pages.runs import READERS, readable_run, run_context
from reversi_site.console.reach import deployment_tools
from reversi_site.console.refusals import refusal_of
from reversi_site.console.timeline import plan_counts, tone, verdict
from reversi_site.console.visit import Visit, address, page
from reversi_site.console.words import residue_of, step_numbers
from rollback.core.actions import Action, Kind
from rollback.core.backoff import Retrying
from rollback.core.errors import SelectionInvalid
from rollback.core.options import RollbackOptions
from rollback.core.plan import Plan, cannot_run_text
from rollback.core.selection import Selection
from rollback.operations.jobs import start_rollback
from rollback.queries import get_plan

LARGEST = 10**9


@dataclass(frozen=True, slots=True)
class PlanLine:
    """An action with its words; `problem` says why it will not be undone."""

    action: Action
    verdict: str
    tone: str
    problem: str | None


def read_selection(asked: QueryDict) -> Selection | None:
    """Return which steps an address asks for: `step=3&step=5`, `steps=3,5` or `to_step=2`; raises SelectionInvalid."""
    listed = [part.strip() for part in asked.get("steps", "").split(",") if part.strip()]
    steps = [_step_number(part) for part in (*asked.getlist("step"), *listed)]
    to_step = asked.get("to_step", "").strip()
    if not steps and not to_step:
        return None
    return Selection(
        steps=tuple(sorted(set(steps))) if steps else None, to_step=_step_number(to_step) if to_step else None
    )


def _step_number(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text) > LARGEST:
        raise SelectionInvalid(f"{text!r} is no number of a step")
    return int(text)


def selection_query(selection: Selection | None) -> dict[str, str]:
    """Return the query that asks for a selection."""
    if selection is None:
        return {}
    if selection.to_step is not None:
        return {"to_step": str(selection.to_step)}
    return {"steps": ",".join(str(step) for step in selection.steps or ())}


def plan_lines(plan: Plan) -> list[PlanLine]:
    """Return the plan's actions with their words, newest step first."""
    return [
        PlanLine(action, verdict(action, plan), tone(action, plan), _problem(action, plan)) for action in plan.actions
    ]


def _problem(action: Action, plan: Plan) -> str | None:
    if action.kind is Kind.COMPENSATE:
        return f"{cannot_run_text(action)} from here" if action.step in plan.cannot_run else None
    if action.kind is Kind.DEFER:
        plural = "" if len(action.blocked_by) == 1 else "s"
        return f"waits for step{plural} {step_numbers(action.blocked_by)}, which must go first and cannot"
    return action.reason


def current_plan(visit: Visit, run: RunRecord, selection: Selection | None) -> Plan:
    """Return the plan as things stand, with what the workers can run."""
    can_run = deployment_tools().can_run
    return get_plan(run_id=run.id, now=visit.now, selection=selection, can_run=can_run)


@page(*READERS)
def run_plan(visit: Visit, run_id: str) -> HttpResponse:
    """Show what a rollback would do, newest step first; changes nothing."""
    run = readable_run(visit, run_id)
    selection = read_selection(visit.request.GET)
    plan = current_plan(visit, run, selection)
    return visit.show(
        "run_plan",
        title="Plan",
        **run_context(visit, run, "plan"),
        plan=plan,
        lines=plan_lines(plan),
        counts=plan_counts(plan),
        rollback_address=address("rollback", query=selection_query(selection), run_id=run.id),
    )


@dataclass(frozen=True, slots=True)
class Consequences:
    """What a person agrees to by starting a rollback."""

    sends: Sequence[Action]
    restores: Sequence[Action]
    amends: Sequence[int]
    residue: Sequence[tuple[str, Sequence[int]]]
    stays: Sequence[PlanLine]
    standing: Sequence[Action]
    unchecked: Sequence[int]
    needs_approval: Sequence[int]

    @classmethod
    def of(cls, plan: Plan) -> Consequences:
        """Sort a plan by what it means."""
        sends = [a for a in plan.actions if a.kind is Kind.COMPENSATE and a.step not in plan.cannot_run]
        return cls(
            sends=sends,
            restores=[action for action in sends if action.compensation_kind == "inverse"],
            amends=[action.step for action in sends if action.compensation_kind != "inverse"],
            residue=residue_of((action.step, action.residue) for action in sends),
            stays=[line for line in plan_lines(plan) if line.problem and line.action.kind is not Kind.SKIP],
            standing=[action for action in plan.actions if action.is_left_standing],
            unchecked=[action.step for action in sends if not action.verified],
            needs_approval=[action.step for action in sends if action.needs_approval],
        )


@page(Act.ROLL_BACK)
def rollback(visit: Visit, run_id: str) -> HttpResponse:
    """Ask whether the plan that is shown shall be executed, and start it; another plan by then is refused."""
    run = readable_run(visit, run_id)
    asked = visit.request.POST if visit.is_sent else visit.request.GET
    selection = read_selection(asked)
    form = RollbackForm(visit.sent)
    if not visit.is_sent or not form.is_valid():
        status = HTTPStatus.BAD_REQUEST if visit.is_sent else HTTPStatus.OK
        return _confirm(visit, run, selection, form=form if visit.is_sent else None, status=status)
    options = RollbackOptions(
        retrying=Retrying(attempts=form.cleaned_data["attempts"]),
        selection=selection,
        approves_compensations=form.cleaned_data["approves"],
        is_overwrite_allowed=form.cleaned_data["overwrites"],
        closes=form.cleaned_data["closes"],
        digest=form.cleaned_data["digest"],
    )
    jobs: list[str] = []

    def start() -> None:
        jobs.append(start_rollback(run_id=run.id, actor=visit.caller.username, now=visit.now, options=options).id)

    refused = refusal_of(start)
    if refused is not None:
        return _confirm(visit, run, selection, refused=refused, status=HTTPStatus.CONFLICT)
    return visit.go("job", run_id=run.id, job_id=jobs[0])


def _confirm(
    visit: Visit,
    run: RunRecord,
    selection: Selection | None,
    *,
    form: RollbackForm | None = None,
    refused: str | None = None,
    status: HTTPStatus,
) -> HttpResponse:
    plan = current_plan(visit, run, selection)
    # A form that comes back shows the plan of now: what was sent with another digest was for another plan.
    fresh = form or RollbackForm(initial={"digest": plan.digest, "attempts": 1})
    return visit.show(
        "rollback",
        title="Roll back",
        **run_context(visit, run, "rollback"),
        status=status,
        plan=plan,
        counts=plan_counts(plan),
        means=Consequences.of(plan),
        form=fresh,
        refused=refused,
        selection=selection_query(selection),
    )
