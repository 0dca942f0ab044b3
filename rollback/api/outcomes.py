"""How calls ended: reported by their caller, or settled by a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from approvals.api.inputs import Observation, observed
from approvals.api.runs import storable_number
from approvals.core.people import Act
from approvals.operations.calls import complete_call
from ledger.core.documents import step_document
from ledger.core.statuses import StepState
from ledger.queries import get_run
from reversi_sdk.references import MISSING
from reversi_site.kit.api.fields import JsonValue, Text
from reversi_site.kit.api.inputs import Body
from reversi_site.kit.api.schema import words
from reversi_site.kit.api.views import OperationView, Right, right
from reversi_site.kit.clock import SystemClock
from rollback.api import answers
from rollback.api.reach import configured_tools
from rollback.core.effect_report import effect_report
from rollback.operations.resolution import resolve
from rollback.queries import keyed_digest_of, load_step

# The journal cuts what is longer; a caller's long error must not cost its outcome.
ERROR = 1_000_000
NOTE = 2000


class Outcome(Body):
    """How a call ended; `after` is the `before` read made again after a success."""

    status = words(StepState.SUCCEEDED, StepState.FAILED, StepState.UNCERTAIN)
    result = JsonValue(required=False)
    after = Observation(required=False, allow_null=True)
    error = Text(required=False, allow_null=True, max_length=ERROR)


class CompleteView(OperationView):
    """The outcome of a call."""

    rights = {"POST": Right(own=Act.CALL)}
    body = Outcome
    answers: ClassVar[Any] = {"POST": {200: answers.Completed}}

    def post(self, request: Request, run_id: str, number: int) -> Response:
        """Report how a call ended; the same outcome again changes nothing, another one is refused.

        The answer describes the effect: what would undo it, and until when.
        """
        complete_call(
            run_id=run_id,
            number=storable_number(run_id, number),
            status=self.given["status"],
            result=self.given.get("result"),
            error=self.given.get("error"),
            after=observed(self.given.get("after")),
            actor=get_run(run_id).agent,
            now=SystemClock().now(),
        )
        return Response(completed_document(run_id, number))


def completed_document(run_id: str, number: int) -> Mapping[str, Any]:
    """Return how the step stands and the report about its effect."""
    step = load_step(run_id, number)
    report = effect_report(step, keyed_digest=keyed_digest_of(run_id))
    document = {"step": number, "state": step.record.state.value, "effect": report}
    lost = step.record.unrecoverable
    return document if lost is None else {**document, "unrecoverable": lost}


class Resolution(Body):
    """What a person found out, and where."""

    status = words(StepState.SUCCEEDED, StepState.FAILED, StepState.COMPENSATED)
    result = JsonValue(required=False)
    note = Text(max_length=NOTE, allow_blank=False)

    def validate(self, attrs: Any) -> Any:
        """Refuse a result of what did not succeed."""
        if "result" in attrs and attrs["status"] != StepState.SUCCEEDED:
            raise ValidationError({"result": ["belongs to the status succeeded"]})
        return attrs


class ResolveView(OperationView):
    """A person's word on a step."""

    rights = {"POST": right(Act.RESOLVE)}
    body = Resolution
    answers: ClassVar[Any] = {"POST": {200: answers.Step}}

    def post(self, request: Request, run_id: str, number: int) -> Response:
        """Settle a step that nobody else can, after looking at the downstream system."""
        step = resolve(
            run_id=run_id,
            number=storable_number(run_id, number),
            status=self.given["status"],
            note=self.given["note"],
            actor=self.caller.username,
            tools=configured_tools(),
            result=self.given.get("result", MISSING),
        )
        return Response(step_document(step))
