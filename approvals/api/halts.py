"""Halts: stop new calls, see what stops them, let them pass again (D19)."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from approvals.api import answers
from approvals.core.documents import halt_document
from approvals.core.halts import HaltScope
from approvals.core.people import Act
from approvals.operations.halts import add_halt, lift_halt
from approvals.overview import page_halts
from reversi_site.kit.api.fields import Text
from reversi_site.kit.api.inputs import Body
from reversi_site.kit.api.paging import PageQuery, page_document, place_of, read_time, read_word
from reversi_site.kit.api.schema import page_of
from reversi_site.kit.api.views import OperationView, right
from reversi_site.kit.clock import SystemClock

GLOB = 200


class Scope(Body):
    """Globs; a call must match every one that is named."""

    tool = Text(required=False, max_length=GLOB)
    actor = Text(required=False, max_length=GLOB)
    tenant = Text(required=False, max_length=GLOB)
    environment = Text(required=False, max_length=GLOB)
    principal = Text(required=False, max_length=GLOB)
    run = Text(required=False, max_length=GLOB)


class AddHalt(Body):
    """Why, and which calls; without a scope all."""

    reason = Text(max_length=500)
    scope = Scope(required=False)


class LiftHalt(Body):
    """Which halt; without an id all that stand."""

    id = Text(required=False, max_length=64)


class ChosenHalts(PageQuery):
    """Which halts are listed."""

    all = serializers.BooleanField(required=False, default=False, help_text="The lifted ones too.")


class HaltsView(OperationView):
    """All halts."""

    rights = {"GET": right(Act.LIST_HALTS)}
    query = ChosenHalts
    answers: ClassVar[Any] = {"GET": {200: page_of(answers.Halt)}}

    def get(self, request: Request) -> Response:
        """List the halts that stand, oldest first."""
        place = place_of(self.given, (read_time, read_word))
        page = page_halts(active_only=not self.given["all"], place=place, size=self.given["limit"])
        return Response(page_document(request, page, halt_document))


class HaltView(OperationView):
    """One halt more."""

    rights = {"POST": right(Act.ADD_HALT)}
    body = AddHalt
    answers: ClassVar[Any] = {"POST": {201: answers.AddedHalt}}

    def post(self, request: Request) -> Response:
        """Stop new calls, in every process, from when this is answered; rollbacks go on.

        `in_flight` are the matching calls that were announced before and that nobody stops.
        """
        scope = HaltScope(**self.given.get("scope", {}))
        halt, in_flight = add_halt(
            reason=self.given["reason"], scope=scope, actor=self.caller.username, now=SystemClock().now()
        )
        return Response({**halt_document(halt), "in_flight": in_flight}, status=201)


class ResumeView(OperationView):
    """The end of halts."""

    rights = {"POST": right(Act.LIFT_HALT)}
    body = LiftHalt
    answers: ClassVar[Any] = {"POST": {200: answers.Lifted}}

    def post(self, request: Request) -> Response:
        """Lift one halt, or all that stand."""
        lifted = lift_halt(id=self.given.get("id"), actor=self.caller.username, now=SystemClock().now())
        return Response({"lifted": lifted})
