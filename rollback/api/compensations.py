"""Undos that a remote worker runs: begun here under a lease, run there, completed here (D27)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from approvals.api.runs import storable_number
from approvals.core.people import Act
from ledger.core.documents import step_document
from reversi_site.kit.api.fields import JsonValue, Text
from reversi_site.kit.api.inputs import Body
from reversi_site.kit.api.schema import words
from reversi_site.kit.api.views import OperationView, Right
from reversi_site.kit.clock import SystemClock
from rollback.api import answers
from rollback.core.ports import Answer, ReadFailed
from rollback.core.steps import AttemptOutcome
from rollback.operations.remote import begin_remote_compensation, complete_remote_compensation

COMPENSATE = Right(own=Act.COMPENSATE_OWN, others=Act.COMPENSATE_ANY)
ERROR = 1_000_000


class Worker(Body):
    """Who will run the undo."""

    worker = Text(max_length=200, allow_blank=False)


class CompensationView(OperationView):
    """The undo of a step, to be run elsewhere."""

    rights = {"POST": COMPENSATE}
    body = Worker
    answers: ClassVar[Any] = {"POST": {200: answers.RemoteCall}}

    def post(self, request: Request, run_id: str, number: int) -> Response:
        """Take the undo of a step under a lease; it must be run and completed before the lease ends."""
        call = begin_remote_compensation(
            run_id=run_id,
            number=storable_number(run_id, number),
            worker=self.given["worker"],
            caller=self.caller,
            now=SystemClock().now(),
        )
        return Response(call.to_json())


class ReadBack(Body):
    """What the read-back answered, or why it could not."""

    answer = JsonValue(required=False)
    error = Text(required=False, max_length=ERROR)

    def validate(self, attrs: Any) -> Any:
        """Refuse an answer that says nothing, or two things."""
        if ("answer" in attrs) == ("error" in attrs):
            raise ValidationError("give either answer or error")
        return attrs


class UndoOutcome(Body):
    """How the undo went."""

    lease = Text(max_length=200)
    status = words(AttemptOutcome.SUCCEEDED, AttemptOutcome.FAILED, AttemptOutcome.UNKNOWN)
    error = Text(required=False, allow_null=True, max_length=ERROR)
    read_back = ReadBack(required=False, allow_null=True)


class CompensationCompleteView(OperationView):
    """The outcome of an undo that was run elsewhere."""

    rights = {"POST": COMPENSATE}
    body = UndoOutcome
    answers: ClassVar[Any] = {"POST": {200: answers.Step}}

    def post(self, request: Request, run_id: str, number: int) -> Response:
        """Report how the undo went, with the answer of its read-back; it is compared here."""
        step = complete_remote_compensation(
            run_id=run_id,
            number=storable_number(run_id, number),
            lease=self.given["lease"],
            status=self.given["status"],
            error=self.given.get("error"),
            read_back=_read_back(self.given.get("read_back")),
            caller=self.caller,
            now=SystemClock().now(),
        )
        return Response(step_document(step))


def _read_back(given: Mapping[str, Any] | None) -> Answer | ReadFailed | None:
    if given is None:
        return None
    return ReadFailed(given["error"]) if "error" in given else Answer(given["answer"])
