"""Plans, rollbacks and read-backs of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from approvals.api.runs import READ
from approvals.core.people import Act
from reversi_site.kit.api.fields import Flag, Integer, Many, Text
from reversi_site.kit.api.inputs import Body, Query
from reversi_site.kit.api.views import OperationView, right
from reversi_site.kit.clock import SystemClock
from rollback.api import answers
from rollback.api.reach import configured_can_run
from rollback.core.backoff import Retrying
from rollback.core.options import RollbackOptions
from rollback.core.plan import Plan
from rollback.core.selection import Selection
from rollback.operations.jobs import start_rollback, start_verification
from rollback.queries import get_last_job, get_plan, get_report

STEPS = r"^[0-9]{1,9}(,[0-9]{1,9}){0,999}$"


class ChosenSteps(Query):
    """Which steps are planned; all without either."""

    steps = serializers.RegexField(STEPS, required=False, help_text="Numbers with commas between them, like 3,5.")
    to_step = serializers.IntegerField(required=False, min_value=0, max_value=2**31 - 1, help_text="It stays.")


class PlanView(OperationView):
    """What a rollback would do."""

    rights = {"GET": READ}
    query = ChosenSteps
    answers: ClassVar[Any] = {"GET": {200: answers.Plan}}

    def get(self, request: Request, run_id: str) -> Response:
        """Show what a rollback would do, newest step first; changes nothing."""
        return Response(plan_of(run_id, asked(self.given)).to_json())


class ReportView(OperationView):
    """How the steps of a run stand."""

    rights = {"GET": READ}
    query = ChosenSteps
    answers: ClassVar[Any] = {"GET": {200: answers.Report}}

    def get(self, request: Request, run_id: str) -> Response:
        """Report how the steps stand now, whoever undid them; `complete` says whether nothing is left to do."""
        report = get_report(run_id=run_id, now=SystemClock().now(), selection=asked(self.given))
        return Response(report.to_json())


def asked(given: Mapping[str, Any]) -> Selection | None:
    """Return the selection that a query makes."""
    numbers = given.get("steps")
    steps = None if numbers is None else [int(number) for number in numbers.split(",")]
    return chosen(steps, given.get("to_step"))


def plan_of(run_id: str, selection: Selection | None) -> Plan:
    """Return the plan as it stands now."""
    now = SystemClock().now()
    return get_plan(run_id=run_id, now=now, selection=selection, can_run=configured_can_run())


def chosen(steps: list[int] | None, to_step: int | None) -> Selection | None:
    """Return the selection that a request makes."""
    if steps is None and to_step is None:
        return None
    return Selection(steps=None if steps is None else tuple(steps), to_step=to_step)


class Decision(Body):
    """How the run is undone; without `confirm` nothing is, and the plan is answered."""

    confirm = Flag(required=False)
    digest = Text(required=False, max_length=64)
    retries = Integer(required=False, min_value=1, max_value=10)
    approve_compensations = Flag(required=False)
    steps = Many(child=Integer(), required=False, max_length=1000)
    to_step = Integer(required=False)
    overwrite = Flag(required=False)
    close = Flag(required=False)


class RollbackView(OperationView):
    """The undoing of a run."""

    rights = {"GET": READ, "POST": right(Act.ROLL_BACK)}
    body = Decision
    answers: ClassVar[Any] = {"GET": {200: answers.Job}, "POST": {202: answers.Job, 200: answers.Plan}}

    def get(self, request: Request, run_id: str) -> Response:
        """Show the latest work on the run: its progress, and its report once it is done."""
        return Response(get_last_job(run_id).to_json())

    def post(self, request: Request, run_id: str) -> Response:
        """Have a worker undo the run; without `confirm: true` only the plan is shown.

        With a `digest` exactly the plan of that digest is executed, or nothing.
        """
        selection = chosen(self.given.get("steps"), self.given.get("to_step"))
        if not self.given.get("confirm", False):
            return Response(plan_of(run_id, selection).to_json())
        job = start_rollback(
            run_id=run_id,
            actor=self.caller.username,
            now=SystemClock().now(),
            options=options_of(self.given, selection),
        )
        return Response(job.to_json(), status=202)


def options_of(given: Mapping[str, Any], selection: Selection | None) -> RollbackOptions:
    """Return what the request decides."""
    return RollbackOptions(
        retrying=Retrying(attempts=given.get("retries", 1)),
        selection=selection,
        approves_compensations=given.get("approve_compensations", False),
        is_overwrite_allowed=given.get("overwrite", False),
        closes=given.get("close", False),
        digest=given.get("digest"),
    )


class VerifyView(OperationView):
    """The read-backs that are still open."""

    rights = {"POST": right(Act.VERIFY)}
    answers: ClassVar[Any] = {"POST": {202: answers.Job}}

    def post(self, request: Request, run_id: str) -> Response:
        """Have a worker read back what was undone and not checked yet."""
        job = start_verification(run_id=run_id, actor=self.caller.username, now=SystemClock().now())
        return Response(job.to_json(), status=202)
