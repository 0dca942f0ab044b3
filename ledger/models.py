"""The journal's tables. Rows are summaries, events are the truth; what may never change is held by triggers."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from ledger.core.statuses import STANDING, Mode, ReadBack, RunState, SettledBy, StepState
from reversi_site.kit.constraints import one_of, words

NAME = 200
# A failed call stands where that is disputed: its effect may be in the world after all (D13).
MAY_STAND = Q(state__in=words(STANDING)) | Q(state=StepState.FAILED.value, is_disputed=True)


class Run(models.Model):
    """One agent's saga; also the head of its event chain and the fence of its executor."""

    id = models.CharField(primary_key=True, max_length=128)
    principal = models.CharField(max_length=NAME)
    actor = models.CharField(max_length=NAME, blank=True)
    tenant = models.CharField(max_length=NAME, blank=True)
    environment = models.CharField(max_length=NAME, blank=True)
    mode = models.CharField(max_length=16)
    scope = models.JSONField()
    reason = models.TextField(blank=True)
    labels = models.JSONField(default=dict)
    state = models.CharField(max_length=16, default=RunState.OPEN.value)
    is_rolling_back = models.BooleanField(default=False)
    fence = models.BigIntegerField(default=0)
    next_step = models.IntegerField(default=0)
    next_seq = models.BigIntegerField(default=0)
    head = models.CharField(max_length=64)
    opened_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)
    active_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=one_of("state", RunState), name="run_state_known"),
            models.CheckConstraint(condition=one_of("mode", Mode), name="run_mode_known"),
            # Who reads `closed_at` may trust that the run is closed, and the other way round.
            models.CheckConstraint(
                condition=Q(state=RunState.CLOSED.value, closed_at__isnull=False)
                | Q(state=RunState.OPEN.value, closed_at__isnull=True),
                name="run_closed_has_time",
            ),
        ]

    def __str__(self) -> str:
        return self.id


class RunSalt(models.Model):
    """The run's secret salt; deleted with the last data or handle of the run, which makes its digests meaningless."""

    run = models.OneToOneField(Run, on_delete=models.PROTECT, primary_key=True, related_name="salt")
    salt = models.BinaryField()

    def __str__(self) -> str:
        return f"salt of {self.run_id}"


class Step(models.Model):
    """One call in a run."""

    # No index of its own: the unique one over run and number serves, and a planner without statistics took it for all.
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="steps", db_index=False)
    number = models.IntegerField()
    tool = models.CharField(max_length=128)
    state = models.CharField(max_length=24)
    effect = models.CharField(max_length=16, null=True, blank=True)
    upstream = models.CharField(max_length=128)
    manifest_checksum = models.CharField(max_length=64, null=True, blank=True)
    snapshot = models.JSONField(default=dict)
    args_digest = models.CharField(max_length=64)
    summary = models.TextField(blank=True)
    depends_on = models.JSONField(default=list)
    requires_steps = models.JSONField(default=list)
    call_key = models.CharField(max_length=64, null=True, blank=True)
    idempotency_key = models.CharField(max_length=255, null=True, blank=True)
    timeout_ms = models.BigIntegerField()
    observed_by = models.CharField(max_length=16)
    settled_by = models.CharField(max_length=16, null=True, blank=True)
    error = models.TextField(null=True, blank=True)
    unrecoverable = models.TextField(null=True, blank=True)
    read_back = models.CharField(max_length=16, default=ReadBack.NOT_DECLARED.value)
    is_disputed = models.BooleanField(default=False)
    is_by_hand = models.BooleanField(default=False)
    is_undo_outcome_unknown = models.BooleanField(default=False)
    is_contract_rejected = models.BooleanField(default=False)
    intended_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["run", "number"], name="step_number_once_per_run"),
            # One standing call per key: what makes a repeated call impossible, whoever checks first (D16).
            models.UniqueConstraint(
                fields=["call_key"],
                condition=Q(call_key__isnull=False) & MAY_STAND,
                name="step_call_key_stands_once",
            ),
            models.CheckConstraint(condition=one_of("state", StepState), name="step_state_known"),
            models.CheckConstraint(condition=one_of("read_back", ReadBack), name="step_read_back_known"),
            models.CheckConstraint(
                condition=Q(settled_by__isnull=True) | one_of("settled_by", SettledBy), name="step_settled_by_known"
            ),
            models.CheckConstraint(
                condition=Q(settled_by__isnull=True, settled_at__isnull=True)
                | Q(settled_by__isnull=False, settled_at__isnull=False),
                name="step_settled_has_time",
            ),
        ]
        indexes: ClassVar = [
            # The timeout sweep looks for calls that never came back.
            models.Index(fields=["state", "intended_at"], name="step_state_intended"),
            # What a tool requires is looked for from the latest step back. Led by the tool, so that no planner without
            # statistics takes it for the look-up of a step by its number.
            models.Index(fields=["tool", "run", "number"], name="step_tool_run_number"),
            # The partial index above serves the constraint; no look-up may hang on a planner's seeing that it fits.
            models.Index(fields=["call_key"], name="step_call_key"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id}#{self.number}"


class UndoHandle(models.Model):
    """The sealed undo handle of a step: purgeable, useless without the key ring."""

    step = models.OneToOneField(Step, on_delete=models.PROTECT, primary_key=True, related_name="sealed_handle")
    key_id = models.CharField(max_length=64)
    nonce = models.BinaryField()
    ciphertext = models.BinaryField()

    def __str__(self) -> str:
        return f"handle of {self.step_id}"


class Event(models.Model):
    """One entry of a run's write-ahead journal; append-only."""

    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="events", db_index=False)
    seq = models.BigIntegerField()
    kind = models.CharField(max_length=48)
    at = models.CharField(max_length=27)
    actor = models.CharField(max_length=NAME)
    step = models.IntegerField(null=True, blank=True)
    data_hash = models.CharField(max_length=64, null=True, blank=True)
    prev = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["run", "seq"], name="event_seq_once_per_run")]
        # The events of one step, without reading the whole run's.
        indexes: ClassVar = [models.Index(fields=["run", "step", "seq"], name="event_run_step_seq")]

    def __str__(self) -> str:
        return f"{self.run_id}@{self.seq}"


class EventData(models.Model):
    """What an event says beyond its kind; never changed, but purgeable."""

    event = models.OneToOneField(Event, on_delete=models.PROTECT, primary_key=True, related_name="payload")
    data = models.BinaryField()

    def __str__(self) -> str:
        return f"data of {self.event_id}"


class GovernanceHead(models.Model):
    """The one row that serialises the governance log."""

    id = models.PositiveSmallIntegerField(primary_key=True)
    next_seq = models.BigIntegerField()
    head = models.CharField(max_length=64)

    class Meta:
        constraints: ClassVar = [models.CheckConstraint(condition=Q(id=1), name="governance_head_is_one_row")]

    def __str__(self) -> str:
        return f"governance@{self.next_seq}"


class GovernanceEvent(models.Model):
    """One act outside runs (a halt added or lifted, …): a chain of its own, append-only."""

    seq = models.BigIntegerField(primary_key=True)
    kind = models.CharField(max_length=48)
    at = models.CharField(max_length=27)
    actor = models.CharField(max_length=NAME)
    data = models.BinaryField()
    data_hash = models.CharField(max_length=64)
    prev = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    def __str__(self) -> str:
        return f"governance@{self.seq}"


class IdempotentAnswer(models.Model):
    """The first answer to a request with an `Idempotency-Key`, sealed; without one the request is in flight.

    `scope` is the digest of caller, route and key, `body_digest` the keyed digest of the body that came with it.
    """

    scope = models.CharField(primary_key=True, max_length=64)
    body_digest = models.CharField(max_length=64)
    token = models.CharField(max_length=32)
    # Epoch milliseconds of the database's clock.
    started_ms = models.BigIntegerField(db_index=True)
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    key_id = models.CharField(max_length=64, null=True, blank=True)
    nonce = models.BinaryField(null=True, blank=True)
    ciphertext = models.BinaryField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            # An answer without its content could be given to nobody.
            models.CheckConstraint(
                condition=Q(status__isnull=True, key_id__isnull=True, nonce__isnull=True, ciphertext__isnull=True)
                | Q(status__isnull=False, key_id__isnull=False, nonce__isnull=False, ciphertext__isnull=False),
                name="idempotent_answer_is_whole",
            ),
        ]

    def __str__(self) -> str:
        return self.scope
