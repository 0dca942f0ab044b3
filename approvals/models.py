"""The gate's tables: halts. A halt is added once and lifted once; both acts are also in the governance log."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

GLOB = 200
NAME = 200


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
