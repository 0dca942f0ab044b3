"""The gate's tables: halts, API keys, requests for approval and their votes; acts on them are in the governance log."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q

from approvals.core.requests import LIVE, Decision, RequestKind, RequestState
from reversi_site.kit.constraints import one_of, words

GLOB = 200
NAME = 200
LABEL = 200
DIGEST = 64
PREFIX = 16


class Halt(models.Model):
    """A word that stops new calls; each glob that is not null must match."""

    id = models.CharField(primary_key=True, max_length=64)
    tool = models.CharField(max_length=GLOB, null=True, blank=True)
    actor = models.CharField(max_length=GLOB, null=True, blank=True)
    tenant = models.CharField(max_length=GLOB, null=True, blank=True)
    environment = models.CharField(max_length=GLOB, null=True, blank=True)
    principal = models.CharField(max_length=GLOB, null=True, blank=True)
    run = models.CharField(max_length=GLOB, null=True, blank=True)
    reason = models.TextField()
    added_by = models.CharField(max_length=NAME)
    added_at = models.DateTimeField()
    lifted_by = models.CharField(max_length=NAME, null=True, blank=True)
    lifted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            # A lifted halt says who lifted it and when; one without the other would be a halt nobody answers for.
            models.CheckConstraint(
                condition=Q(lifted_by__isnull=True, lifted_at__isnull=True)
                | Q(lifted_by__isnull=False, lifted_at__isnull=False),
                name="halt_lifted_has_who_and_when",
            ),
        ]
        indexes: ClassVar = [
            # Every call reads the halts that stand, and those only.
            models.Index(fields=["added_at"], condition=Q(lifted_at__isnull=True), name="halt_standing"),
        ]

    def __str__(self) -> str:
        return self.id


class ApiKey(models.Model):
    """A key of a user: only its hash is here; the key itself was shown once."""

    prefix = models.CharField(max_length=PREFIX, unique=True)
    secret_hash = models.CharField(max_length=DIGEST)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="api_keys")
    label = models.CharField(max_length=LABEL, blank=True)
    # Null: whatever the owner's groups are at the time; a list can only leave some of them out.
    roles = models.JSONField(null=True, blank=True)
    scope = models.JSONField()
    modes = models.JSONField()
    actor = models.CharField(max_length=NAME, null=True, blank=True)
    tenant = models.CharField(max_length=NAME, null=True, blank=True)
    environment = models.CharField(max_length=NAME, null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=NAME)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoked_by = models.CharField(max_length=NAME, null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            # A revoked key says who revoked it and when.
            models.CheckConstraint(
                condition=Q(revoked_by__isnull=True, revoked_at__isnull=True)
                | Q(revoked_by__isnull=False, revoked_at__isnull=False),
                name="api_key_revoked_has_who_and_when",
            ),
        ]

    def __str__(self) -> str:
        return f"rk_{self.prefix}"


class ApprovalRequest(models.Model):
    """A request for one exact call, or for one exact undo of a step."""

    id = models.CharField(primary_key=True, max_length=40)
    kind = models.CharField(max_length=16)
    run = models.ForeignKey("ledger.Run", on_delete=models.PROTECT, related_name="+")
    step = models.IntegerField(null=True, blank=True)
    tool = models.CharField(max_length=128)
    args_digest = models.CharField(max_length=DIGEST)
    manifest_checksum = models.CharField(max_length=DIGEST)
    state = models.CharField(max_length=16, default=RequestState.PENDING.value)
    roles = models.JSONField()
    quorum = models.IntegerField()
    deadline_at = models.DateTimeField()
    use_until = models.DateTimeField(null=True, blank=True)
    requested_by = models.CharField(max_length=NAME)
    run_principal = models.CharField(max_length=NAME)
    reason = models.TextField(blank=True)
    summary = models.TextField(blank=True)
    effect = models.CharField(max_length=16)
    created_at = models.DateTimeField()
    answered_at = models.DateTimeField(null=True, blank=True)
    used_at = models.DateTimeField(null=True, blank=True)
    used_by_step = models.IntegerField(null=True, blank=True)
    denied_reason = models.TextField(blank=True)

    class Meta:
        constraints: ClassVar = [
            # Two live requests for the same thing would be two chances to have it approved, and two uses.
            models.UniqueConstraint(
                fields=["run", "tool", "args_digest", "manifest_checksum"],
                condition=Q(state__in=words(LIVE), kind=RequestKind.CALL.value),
                name="approval_one_live_per_call",
            ),
            models.UniqueConstraint(
                fields=["run", "step", "tool", "args_digest", "manifest_checksum"],
                condition=Q(state__in=words(LIVE), kind=RequestKind.COMPENSATION.value),
                name="approval_one_live_per_undo",
            ),
            models.CheckConstraint(condition=one_of("state", RequestState), name="approval_state_known"),
            models.CheckConstraint(condition=one_of("kind", RequestKind), name="approval_kind_known"),
            models.CheckConstraint(condition=Q(quorum__gte=1), name="approval_quorum_positive"),
            # Only an approval that was given in time can be used, and by one step.
            models.CheckConstraint(
                condition=Q(state=RequestState.USED.value, used_at__isnull=False, used_by_step__isnull=False)
                | (~Q(state=RequestState.USED.value) & Q(used_at__isnull=True, used_by_step__isnull=True)),
                name="approval_used_has_step_and_time",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=words((RequestState.APPROVED, RequestState.USED)))
                | Q(answered_at__isnull=False, use_until__isnull=False),
                name="approval_approved_has_times",
            ),
        ]
        indexes: ClassVar = [
            # A repeated call looks for the latest request of its own.
            models.Index(fields=["run", "tool", "args_digest"], name="approval_of_call"),
            # The deadlines look at what is still live.
            models.Index(fields=["deadline_at"], condition=Q(state__in=words(LIVE)), name="approval_live"),
        ]

    def __str__(self) -> str:
        return self.id


class SealedArguments(models.Model):
    """The arguments that wait for approval, sealed; the row goes when the request ends."""

    request = models.OneToOneField(
        ApprovalRequest, on_delete=models.PROTECT, primary_key=True, related_name="sealed_arguments"
    )
    key_id = models.CharField(max_length=64)
    nonce = models.BinaryField()
    ciphertext = models.BinaryField()

    def __str__(self) -> str:
        return f"arguments of {self.request_id}"


class Vote(models.Model):
    """One person's vote on a request."""

    request = models.ForeignKey(ApprovalRequest, on_delete=models.PROTECT, related_name="votes")
    voter = models.CharField(max_length=NAME)
    decision = models.CharField(max_length=16)
    role = models.CharField(max_length=NAME)
    reason = models.TextField(blank=True)
    at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["request", "voter"], name="vote_once_per_person"),
            models.CheckConstraint(condition=one_of("decision", Decision), name="vote_decision_known"),
        ]

    def __str__(self) -> str:
        return f"{self.voter} on {self.request_id}"
