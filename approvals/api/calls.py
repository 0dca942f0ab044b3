"""Calls: announced here, before their caller makes them."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.utils.module_loading import import_string
from rest_framework.request import Request
from rest_framework.response import Response

from approvals.api import answers
from approvals.api.inputs import Observation, observed
from approvals.core.errors import BadCall
from approvals.core.people import Act
from approvals.core.redaction import redaction_paths
from approvals.operations.calls import Begun, begin_call
from approvals.operations.intents import OBSERVED_BY_CALLER
from reversi_site.kit.api.fields import Flag, Integer, JsonObject, Many, Text
from reversi_site.kit.api.inputs import Body
from reversi_site.kit.api.views import OperationView, Right
from reversi_site.kit.clock import SystemClock


class Call(Body):
    """The call that shall be made.

    `idempotency_key` is the call's own key, which goes downstream where the tool carries one; the header of the same
    name only makes this request repeatable.
    """

    tool = Text(max_length=128)
    args = JsonObject()
    reason = Text(required=False, max_length=2000)
    depends_on = Many(child=Integer(), required=False, max_length=1000)
    idempotency_key = Text(required=False, allow_null=True, max_length=255)
    stage = Flag(required=False)
    before = Observation(required=False)


class CallsView(OperationView):
    """The calls of a run, to add one."""

    rights = {"POST": Right(own=Act.CALL)}
    body = Call
    answers: ClassVar[Any] = {"POST": {201: answers.AllowedCall, 202: answers.WaitingCall}}

    def post(self, request: Request, run_id: str) -> Response:
        """Announce a call before it is made.

        201: it may be made, and its outcome must be reported. 202: people must agree first; repeat it when they
        have. 403: it is blocked. 428: read the state before, and repeat the call with it.
        """
        given = dict(self.given)
        if given.pop("stage", False):
            raise BadCall("stage", "this version does not stage calls: leave it out")
        begun = begin_call(
            run_id=run_id,
            principal=self.caller.username,
            now=SystemClock().now(),
            observed_by=OBSERVED_BY_CALLER,
            upstream_of=import_string(settings.UPSTREAM_OF),
            before=observed(given.pop("before", None)),
            **given,
        )
        return Response(allowed_document(begun), status=201)


def allowed_document(begun: Begun) -> dict[str, Any]:
    """Return what the caller needs to make the call, and what it must not repeat when it reports how the call ended."""
    paths = redaction_paths(begun.manifest, settings.CONFIGURATION.redaction)
    return {
        "decision": "allowed",
        "step": begun.step.number,
        "state": begun.step.state.value,
        "effect": begun.step.effect,
        "idempotency_key": begun.idempotency_key,
        "timeout_ms": begun.timeout_ms,
        "notes": list(begun.notes),
        "violations": [violation.to_json() for violation in begun.violations],
        "redacted": [reference.text for reference in paths],
    }
