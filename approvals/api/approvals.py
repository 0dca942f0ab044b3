"""Requests for approval: who asks for what, and the votes on it (D17)."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from approvals.api import answers
from approvals.api.waiting import LONGEST_SECONDS, wait_until
from approvals.core.errors import ApprovalNotFound
from approvals.core.people import Act, Caller
from approvals.core.requests import ApprovalRecord, Decision, RequestState, may_see
from approvals.operations.approvals import cast_vote
from approvals.overview import page_approvals
from approvals.queries import get_approval, get_run_for
from reversi_site.kit.api.fields import Text
from reversi_site.kit.api.inputs import Body, Query
from reversi_site.kit.api.paging import PageQuery, page_document, place_of, read_word
from reversi_site.kit.api.schema import choices, page_of
from reversi_site.kit.api.views import OperationView, Right, right
from reversi_site.kit.clock import SystemClock

_ID = re.compile(r"apr_[0-9A-Z]{26}")


class Reason(Body):
    """Why."""

    reason = Text(required=False, max_length=2000)


class ChosenApprovals(PageQuery):
    """Which requests are listed."""

    state = choices(RequestState, required=False)
    run = serializers.CharField(required=False, max_length=128)


class Patience(Query):
    """How long to wait for an answer."""

    wait = serializers.IntegerField(
        required=False, default=0, min_value=0, help_text=f"Seconds, at most {LONGEST_SECONDS}; longer is cut."
    )


class ApprovalsView(OperationView):
    """All requests."""

    rights = {"GET": Right()}
    query = ChosenApprovals
    answers: ClassVar[Any] = {"GET": {200: page_of(answers.Approval)}}

    def get(self, request: Request) -> Response:
        """List the requests for approval that the caller may see, newest first, without their arguments."""
        state = self.given.get("state")
        page = page_approvals(
            now=SystemClock().now(),
            caller=self.caller,
            states=None if state is None else (RequestState(state),),
            run_id=self.given.get("run"),
            place=place_of(self.given, (read_word,)),
            size=self.given["limit"],
        )
        return Response(page_document(request, page, ApprovalRecord.to_json))


class ApprovalView(OperationView):
    """One request."""

    rights = {"GET": Right()}
    query = Patience
    answers: ClassVar[Any] = {"GET": {200: answers.Approval}}

    def get(self, request: Request, approval_id: str) -> Response:
        """Look at a request, with the complete arguments of its call; `wait` holds the answer until it is answered."""
        found = visible_approval(self.caller, approval_id)
        if self.given["wait"] and found.state is RequestState.PENDING:
            wait_until(lambda: _read(approval_id).state is not RequestState.PENDING, seconds=self.given["wait"])
            found = visible_approval(self.caller, approval_id)
        return Response(found.to_json())


def visible_approval(caller: Caller, approval_id: str) -> ApprovalRecord:
    """Return the request when the caller may see it; raises ApprovalNotFound, ForeignRun and NotPermitted."""
    found = _read(approval_id)
    if not may_see(caller, found):
        get_run_for(caller=caller, run_id=found.run_id, own=Act.READ_OWN_RUN, others=Act.READ_APPROVALS)
    return found


def _read(approval_id: str) -> ApprovalRecord:
    return get_approval(_existing_form(approval_id), now=SystemClock().now())


def _existing_form(approval_id: str) -> str:
    if not _ID.fullmatch(approval_id):
        raise ApprovalNotFound("of that id: it has not the form of one")
    return approval_id


class _VoteView(OperationView):
    """A vote on a request."""

    rights = {"POST": right(Act.VOTE)}
    body = Reason
    answers: ClassVar[Any] = {"POST": {200: answers.Approval}}
    decision: ClassVar[Decision]

    def vote(self, approval_id: str) -> Response:
        """Count the caller's vote."""
        found = cast_vote(
            approval_id=_existing_form(approval_id),
            voter=self.caller,
            decision=self.decision,
            reason=self.given.get("reason", ""),
            now=SystemClock().now(),
            via="api",
        )
        return Response(found.to_json())


class ApproveView(_VoteView):
    """A vote for a request."""

    decision = Decision.APPROVE

    def post(self, request: Request, approval_id: str) -> Response:
        """Approve the call; when enough people have, its caller repeats it and it passes once."""
        return self.vote(approval_id)


class DenyView(_VoteView):
    """A vote against a request."""

    decision = Decision.DENY

    def post(self, request: Request, approval_id: str) -> Response:
        """Deny the call; one denial is enough."""
        return self.vote(approval_id)
