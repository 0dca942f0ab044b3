"""What the API answers about runs, calls, approvals and halts, for its published schema."""

from __future__ import annotations

from rest_framework import serializers

from approvals.core.requests import Decision, RequestKind, RequestState
from approvals.core.violations import Code
from ledger.core.statuses import Mode, ReadBack, RunState, SettledBy, StepState
from reversi_sdk.model import Effect
from reversi_site.kit.api.fields import JsonObject, Texts
from reversi_site.kit.api.schema import Answer, choices

_Char = serializers.CharField
_Time = serializers.DateTimeField


class Run(Answer):
    """A run; `steps` is how many calls it has."""

    id = _Char()
    principal = _Char()
    actor = _Char()
    tenant = _Char()
    environment = _Char()
    mode = choices(Mode)
    scope = serializers.ListField(child=_Char())
    reason = _Char()
    labels = Texts()
    state = choices(RunState)
    rolling_back = serializers.BooleanField()
    steps = serializers.IntegerField()
    opened_at = _Time()
    closed_at = _Time(allow_null=True)
    active_at = _Time()


class Step(Answer):
    """One call of a run."""

    step = serializers.IntegerField()
    tool = _Char()
    state = choices(StepState)
    effect = choices(Effect, allow_null=True)
    summary = _Char()
    depends_on = serializers.ListField(child=serializers.IntegerField())
    manifest = _Char(allow_null=True)
    idempotency_key = _Char(allow_null=True)
    observed_by = _Char()
    settled_by = choices(SettledBy, allow_null=True)
    error = _Char(allow_null=True)
    unrecoverable = _Char(allow_null=True)
    read_back = choices(ReadBack, allow_null=True)
    disputed = serializers.BooleanField()
    by_hand = serializers.BooleanField()
    undo_outcome_unknown = serializers.BooleanField()
    intended_at = _Time()
    settled_at = _Time(allow_null=True)


class Event(Answer):
    """One entry of a run's journal; without `data` it had none, or it was purged."""

    seq = serializers.IntegerField()
    kind = _Char()
    at = _Time()
    actor = _Char()
    step = serializers.IntegerField(allow_null=True)
    data = JsonObject(allow_null=True)  # type: ignore[assignment]  # a field's name, not the serializer's property
    data_hash = _Char(allow_null=True)
    prev = _Char()
    hash = _Char()


class Violation(Answer):
    """One reason against a call."""

    code = choices(Code)
    message = _Char()


class AllowedCall(Answer):
    """A call that may be made now; values at `redacted` places must not stand in the error that is reported."""

    decision = serializers.ChoiceField(["allowed"])
    step = serializers.IntegerField()
    state = choices(StepState)
    effect = choices(Effect, allow_null=True)
    idempotency_key = _Char(allow_null=True)
    timeout_ms = serializers.IntegerField()
    notes = serializers.ListField(child=_Char())
    violations = Violation(many=True)
    redacted = serializers.ListField(child=_Char())


class Vote(Answer):
    """One person's vote."""

    voter = _Char()
    decision = choices(Decision)
    role = _Char()
    reason = _Char()
    at = _Time()


class Approval(Answer):
    """A request for approval of one exact call."""

    id = _Char()
    kind = choices(RequestKind)
    run_id = _Char()
    step = serializers.IntegerField(allow_null=True)
    tool = _Char()
    effect = choices(Effect)
    effect_label = _Char()
    summary = _Char()
    reason = _Char()
    arguments = JsonObject(allow_null=True)
    args_digest = _Char()
    manifest = _Char()
    state = choices(RequestState)
    roles = serializers.ListField(child=_Char())
    quorum = serializers.IntegerField()
    requested_by = _Char()
    principal = _Char()
    created_at = _Time()
    deadline_at = _Time()
    answered_at = _Time(allow_null=True)
    use_until = _Time(allow_null=True)
    used_at = _Time(allow_null=True)
    used_by_step = serializers.IntegerField(allow_null=True)
    denied_reason = _Char(allow_null=True)
    votes = Vote(many=True)


class WaitingCall(Answer):
    """A call that waits until people agree to it."""

    decision = serializers.ChoiceField(["approval_required"])
    approval = Approval()


class Halt(Answer):
    """A word that stops new calls; `scope` has the globs of the fields it names."""

    id = _Char()
    reason = _Char()
    scope = Texts()
    added_by = _Char()
    added_at = _Time()
    lifted_by = _Char(allow_null=True)
    lifted_at = _Time(allow_null=True)


class AddedHalt(Halt):
    """A halt that stands now, and how many matching calls were announced before it."""

    in_flight = serializers.IntegerField()


class Lifted(Answer):
    """How many halts were lifted."""

    lifted = serializers.IntegerField()
