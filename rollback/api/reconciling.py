"""What the run's own agent found out about calls whose outcome was lost (D25)."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework.request import Request
from rest_framework.response import Response

from approvals.api.runs import storable_number
from approvals.core.people import Act
from ledger.core.statuses import StepState
from reversi_sdk.references import MISSING
from reversi_site.kit.api.fields import Integer, JsonValue, Many, Text
from reversi_site.kit.api.inputs import Body
from reversi_site.kit.api.schema import words
from reversi_site.kit.api.views import OperationView, Right
from reversi_site.kit.clock import SystemClock
from rollback.api import answers
from rollback.operations.reconcile import ReconcileAnswer, reconcile

NOTE = 2000


class Finding(Body):
    """What became of one call."""

    step = Integer()
    status = words(StepState.SUCCEEDED, StepState.FAILED)
    result = JsonValue(required=False)
    note = Text(max_length=NOTE, allow_blank=False)


class Findings(Body):
    """What the agent found out; without any the open steps are listed."""

    answers = Many(child=Finding(), required=False, max_length=1000)


class ReconcileView(OperationView):
    """What the run's own agent found out."""

    rights = {"POST": Right(own=Act.RECONCILE_OWN, others=Act.RESOLVE)}
    body = Findings
    answers: ClassVar[Any] = {"POST": {200: answers.Reconciled}}

    def post(self, request: Request, run_id: str) -> Response:
        """Settle unresolved calls of the run, and list those that stay open."""
        found = [
            ReconcileAnswer(
                step=storable_number(run_id, each["step"]),
                status=each["status"],
                note=each["note"],
                result=each.get("result", MISSING),
            )
            for each in self.given.get("answers", ())
        ]
        outcome = reconcile(run_id=run_id, answers=found, caller=self.caller, now=SystemClock().now())
        return Response(outcome.to_json())
