"""What the API answers about plans and rollbacks, for its published schema."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from approvals.api.answers import Step
from ledger.core.statuses import StepState
from reversi_sdk.model import CompensationKind
from reversi_site.kit.api.fields import JsonObject
from reversi_site.kit.api.schema import Answer, choices
from rollback.core.actions import Kind
from rollback.core.jobs import JobKind, JobState

_Char = serializers.CharField


def _numbers(**options: Any) -> serializers.ListField:
    return serializers.ListField(child=serializers.IntegerField(), **options)


class Selection(Answer):
    """Which steps were asked for, and which must go with them."""

    steps = _numbers(allow_null=True)
    to_step = serializers.IntegerField(allow_null=True)
    selected = _numbers()
    added = _numbers()


class Action(Answer):
    """What a rollback would do about one step."""

    step = serializers.IntegerField()
    tool = _Char()
    kind = choices(Kind)
    compensation_tool = _Char(allow_null=True)
    args = JsonObject(allow_null=True)
    idempotency_key = _Char(allow_null=True)
    needs_approval = serializers.BooleanField()
    residue = serializers.ListField(child=_Char())
    compensation_kind = choices(CompensationKind, allow_null=True)
    verified = serializers.BooleanField()
    reason = _Char(allow_null=True)
    blocked_by = _numbers()
    deadline = serializers.DateTimeField(allow_null=True)
    fallback = serializers.BooleanField()
    summary = _Char()


class Plan(Answer):
    """What a rollback would do, newest step first."""

    run_id = _Char()
    actions = Action(many=True)
    fully_reversible = serializers.BooleanField()
    leaves_standing = _numbers()
    selection = Selection(allow_null=True)
    digest = _Char()


class FailedStep(Answer):
    """A step whose undo, or its check, failed."""

    step = serializers.IntegerField()
    error = _Char(allow_null=True)


class DeferredStep(Answer):
    """A step that others which still stand were built on."""

    step = serializers.IntegerField()
    blocked_by = _numbers()


class Residue(Answer):
    """What stays behind after an undo."""

    step = serializers.IntegerField()
    residue = serializers.ListField(child=_Char())


class Report(Answer):
    """How every step stands after what was undone; `steps` has a line for each."""

    run_id = _Char()
    compensated = _numbers()
    skipped = _numbers()
    failed = FailedStep(many=True)
    unrecoverable = _numbers()
    unresolved = _numbers()
    unmanifested = _numbers()
    deferred = DeferredStep(many=True)
    awaiting_approval = _numbers()
    unverified = _numbers()
    complete = serializers.BooleanField()
    by_hand = _numbers()
    unchecked = _numbers()
    fallback = _numbers()
    leaves_standing = _numbers()
    residue = Residue(many=True)
    selection = Selection(allow_null=True)
    steps = serializers.ListField(child=JsonObject())


class Progress(Answer):
    """How far a job is."""

    done = serializers.IntegerField()
    total = serializers.IntegerField()


class Job(Answer):
    """The work on a run; the report is there once it is done."""

    job = _Char()
    run_id = _Char()
    kind = choices(JobKind)
    state = choices(JobState)
    progress = Progress()
    report = JsonObject(allow_null=True)
    error = _Char(allow_null=True)
    waiting_for = _Char(allow_null=True)


class Completed(Answer):
    """How a call ended, and what its effect is."""

    step = serializers.IntegerField()
    state = choices(StepState)
    effect = JsonObject()
    unrecoverable = _Char(required=False)


class RemoteRead(Answer):
    """A read-back that whoever runs the undo makes after it."""

    tool = _Char()
    arguments = JsonObject()


class RemoteCall(Answer):
    """An undo to be run elsewhere, under a lease."""

    run_id = _Char()
    step = serializers.IntegerField()
    tool = _Char()
    original_tool = _Char()
    args = JsonObject()
    idempotency_key = _Char()
    lease = _Char()
    lease_ms = serializers.IntegerField()
    verification = RemoteRead(allow_null=True)


class Settled(Answer):
    """A step that an answer settled."""

    step = serializers.IntegerField()
    state = choices(StepState)


class Open(Answer):
    """A step that is still unresolved, and why."""

    step = serializers.IntegerField()
    state = choices(StepState)
    reason = _Char()


class Reconciled(Answer):
    """What the answers settled, and what is left."""

    settled = Settled(many=True)
    open = Open(many=True)


__all__ = ["Completed", "Job", "Plan", "Reconciled", "RemoteCall", "Report", "Step"]
