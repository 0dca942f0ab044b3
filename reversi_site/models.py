"""The composition root's tables: which jobs run when, and the sign of life that a real worker leaves.

Times that machines compare are epoch milliseconds of the database's clock; `last_run_at` is for people.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q


class Schedule(models.Model):
    """When one job of the fixed list runs (D31)."""

    job = models.CharField(primary_key=True, max_length=40)
    interval_ms = models.BigIntegerField()
    is_on = models.BooleanField(default=True)
    next_run_ms = models.BigIntegerField(default=0)
    # Set while the job waits in the queue, so that a queue nobody serves does not fill up with repetitions.
    queued_ms = models.BigIntegerField(null=True, blank=True)
    last_run_at = models.DateTimeField(null=True, blank=True)
    last_error = models.TextField(blank=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(interval_ms__gt=0), name="schedule_interval_positive"),
        ]

    def __str__(self) -> str:
        return self.job


class Heartbeat(models.Model):
    """When a worker on this host last ran a job from the queue."""

    host = models.CharField(primary_key=True, max_length=255)
    beaten_ms = models.BigIntegerField()

    def __str__(self) -> str:
        return f"heartbeat of {self.host}"
