"""The tables of rollbacks: the jobs that work on a run, and every send of an undo."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from reversi_site.kit.constraints import one_of, words
from rollback.core.jobs import LIVE, JobKind, JobState
from rollback.core.steps import AttemptOutcome, Role

NAME = 200


class RollbackJob(models.Model):
    """A job on one run: the authority of which the queue's task is only a hint."""

    id = models.CharField(primary_key=True, max_length=40)
    run = models.ForeignKey("ledger.Run", on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=16)
    state = models.CharField(max_length=16, default=JobState.QUEUED.value)
    options = models.JSONField()
    is_foreground = models.BooleanField(default=False)
    requested_by = models.CharField(max_length=NAME)
    worker = models.CharField(max_length=NAME, blank=True)
    fence = models.BigIntegerField(null=True, blank=True)
    # Epoch milliseconds of the database's clock.
    lease_until_ms = models.BigIntegerField(null=True, blank=True)
    # Of an undo that a remote worker runs: the hash of the token that proves whose it is.
    lease_hash = models.CharField(max_length=64, null=True, blank=True, unique=True)
    # The upstream whose live session the job needs, while only the gateway that holds it can do the job.
    waiting_for = models.CharField(max_length=128, null=True, blank=True)
    claims = models.IntegerField(default=0)
    enqueues = models.IntegerField(default=0)
    enqueued_at = models.DateTimeField(null=True, blank=True)
    done = models.IntegerField(default=0)
    total = models.IntegerField(default=0)
    report = models.JSONField(null=True, blank=True)
    error = models.TextField(null=True, blank=True)
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            # Two jobs that undo the same run would undo it twice.
            models.UniqueConstraint(
                fields=["run"], condition=Q(state__in=words(LIVE)), name="rollback_job_one_live_per_run"
            ),
            models.CheckConstraint(condition=one_of("state", JobState), name="rollback_job_state_known"),
            models.CheckConstraint(condition=one_of("kind", JobKind), name="rollback_job_kind_known"),
            # A running job without an end to its lease could never be taken over.
            models.CheckConstraint(
                condition=~Q(state=JobState.RUNNING.value)
                | Q(fence__isnull=False, lease_until_ms__isnull=False, started_at__isnull=False),
                name="rollback_job_running_has_lease",
            ),
            models.CheckConstraint(
                condition=Q(state__in=words(LIVE), ended_at__isnull=True)
                | Q(state__in=words((JobState.DONE, JobState.FAILED)), ended_at__isnull=False),
                name="rollback_job_ended_has_time",
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["run", "created_at"], name="rollback_job_of_run")]

    def __str__(self) -> str:
        return self.id


class Attempt(models.Model):
    """One send of an undo, committed before it is sent; without an outcome nobody knows what became of it."""

    run = models.ForeignKey("ledger.Run", on_delete=models.PROTECT, related_name="+")
    step = models.IntegerField()
    number = models.IntegerField()
    job = models.ForeignKey(RollbackJob, on_delete=models.PROTECT, related_name="attempts")
    pair = models.CharField(max_length=64)
    generation = models.IntegerField()
    key = models.CharField(max_length=64)
    tool = models.CharField(max_length=128)
    role = models.CharField(max_length=16)
    is_keyed = models.BooleanField()
    outcome = models.CharField(max_length=16, null=True, blank=True)
    error = models.TextField(null=True, blank=True)
    is_settled = models.BooleanField(default=False)
    sent_at = models.DateTimeField()
    answered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "step", "number"], name="attempt_number_once_per_step"),
            models.CheckConstraint(condition=one_of("role", Role), name="attempt_role_known"),
            models.CheckConstraint(
                condition=Q(outcome__isnull=True, answered_at__isnull=True)
                | Q(outcome__in=words(AttemptOutcome), answered_at__isnull=False),
                name="attempt_outcome_has_time",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.run_id}#{self.step}.{self.number}"
