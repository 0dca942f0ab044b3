"""Runs: open, list, look at, close."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from approvals.api import answers
from approvals.core.people import Act, Caller, may
from approvals.operations.runs import close_run_for, open_run_for
from ledger.core.documents import event_document, run_document, step_document
from ledger.core.errors import StepNotFound
from ledger.core.statuses import Mode, RunState
from ledger.overview import RunFilter, page_journal, page_run_records
from ledger.queries import get_run, get_step, list_step_page
from reversi_site.kit.api.fields import LARGEST, Many, Text, Texts
from reversi_site.kit.api.inputs import Body
from reversi_site.kit.api.paging import PageQuery, page_document, place_of, read_number, read_time, read_word
from reversi_site.kit.api.schema import choices, page_of
from reversi_site.kit.api.views import OperationView, Right, right
from reversi_site.kit.clock import SystemClock

NAME = 200
READ = Right(own=Act.READ_OWN_RUN, others=Act.READ_ANY_RUN)


class OpenRun(Body):
    """The run that shall be opened."""

    id = Text(required=False)
    actor = Text(required=False, max_length=NAME)
    tenant = Text(required=False, max_length=NAME)
    environment = Text(required=False, max_length=NAME)
    mode = choices(Mode, required=False)
    scope = Many(child=Text(max_length=NAME), required=False, max_length=1000)
    reason = Text(required=False, max_length=2000)
    labels = Texts(required=False)


class ChosenRuns(PageQuery):
    """Which runs are listed; names are globs."""

    state = choices(RunState, required=False)
    actor = serializers.CharField(required=False, max_length=NAME)
    tenant = serializers.CharField(required=False, max_length=NAME)
    environment = serializers.CharField(required=False, max_length=NAME)
    tool = serializers.CharField(required=False, max_length=NAME)
    since = serializers.DateTimeField(required=False, help_text="Opened at this time or later.")
    until = serializers.DateTimeField(required=False, help_text="Opened before this time.")
    attention = serializers.BooleanField(required=False, help_text="With a step that nobody settled or undid.")


class RunsView(OperationView):
    """All runs."""

    rights = {"GET": Right(), "POST": right(Act.OPEN_RUN)}
    body = OpenRun
    query = ChosenRuns
    answers: ClassVar[Any] = {"GET": {200: page_of(answers.Run)}, "POST": {201: answers.Run, 200: answers.Run}}

    def get(self, request: Request) -> Response:
        """List runs, newest first.

        Whoever may not read the runs of others sees only their own.
        """
        given = dict(self.given)
        place, size = place_of(given, (read_time, read_word)), given.pop("limit")
        given.pop("cursor", None)
        wanted = RunFilter(
            principal=visible_principal(self.caller), needs_attention=given.pop("attention", False), **given
        )
        page = page_run_records(wanted=wanted, place=place, size=size)
        return Response(page_document(request, page, run_document))

    def post(self, request: Request) -> Response:
        """Open a run, or continue the one of that id unchanged."""
        given = dict(self.given)
        run_id = given.pop("id", None)
        run, is_new = open_run_for(caller=self.caller, now=SystemClock().now(), run_id=run_id, **given)
        return Response(run_document(run), status=201 if is_new else 200)


def visible_principal(caller: Caller) -> str | None:
    """Return whose runs the caller may list: None for everybody's."""
    return None if may(caller, Act.READ_ANY_RUN) else caller.username


class RunView(OperationView):
    """One run."""

    rights = {"GET": READ}
    answers: ClassVar[Any] = {"GET": {200: answers.Run}}

    def get(self, request: Request, run_id: str) -> Response:
        """Look at a run."""
        return Response(run_document(get_run(run_id)))


class RunCloseView(OperationView):
    """The end of a run."""

    rights = {"POST": Right(own=Act.CLOSE_OWN_RUN, others=Act.CLOSE_ANY_RUN)}
    answers: ClassVar[Any] = {"POST": {200: answers.Run}}

    def post(self, request: Request, run_id: str) -> Response:
        """Close a run: it takes no more calls, and can still be planned and rolled back."""
        return Response(run_document(close_run_for(caller=self.caller, run_id=run_id, now=SystemClock().now())))


class StepsView(OperationView):
    """The calls of a run."""

    rights = {"GET": READ}
    query = PageQuery
    answers: ClassVar[Any] = {"GET": {200: page_of(answers.Step)}}

    def get(self, request: Request, run_id: str) -> Response:
        """List the steps of a run, oldest first."""
        page = list_step_page(run_id=run_id, place=place_of(self.given, (read_number,)), size=self.given["limit"])
        return Response(page_document(request, page, step_document))


class StepView(OperationView):
    """One call of a run."""

    rights = {"GET": READ}
    answers: ClassVar[Any] = {"GET": {200: answers.Step}}

    def get(self, request: Request, run_id: str, number: int) -> Response:
        """Look at a step."""
        return Response(step_document(get_step(run_id, storable_number(run_id, number))))


def storable_number(run_id: str, number: int) -> int:
    """Return the number when a step can have it; raises StepNotFound."""
    if number > LARGEST:
        raise StepNotFound(run_id, number)
    return number


class EventsView(OperationView):
    """The journal of a run."""

    rights = {"GET": READ}
    query = PageQuery
    answers: ClassVar[Any] = {"GET": {200: page_of(answers.Event)}}

    def get(self, request: Request, run_id: str) -> Response:
        """List the events of a run, oldest first."""
        page = page_journal(run_id=run_id, place=place_of(self.given, (read_number,)), size=self.given["limit"])
        return Response(page_document(request, page, event_document))
