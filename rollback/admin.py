"""The tables of rollbacks in the console, to be read."""

from __future__ import annotations

from django.contrib import admin

from reversi_site.kit.admin import ReadOnlyAdmin
from rollback.models import Attempt, RollbackJob


@admin.register(RollbackJob)
class RollbackJobAdmin(ReadOnlyAdmin):
    """Jobs, with their leases and fences."""

    list_display = ("__str__", "state", "kind", "run_id", "requested_by", "worker", "created_at", "ended_at")
    list_filter = ("state", "kind")
    search_fields = ("id", "run__id", "requested_by")
    ordering = ("-created_at", "-id")


@admin.register(Attempt)
class AttemptAdmin(ReadOnlyAdmin):
    """Every send of an undo."""

    list_display = ("__str__", "outcome", "tool", "role", "is_keyed", "is_settled", "sent_at", "answered_at")
    list_filter = ("outcome", "role")
    search_fields = ("run__id", "tool", "key")
    ordering = ("-pk",)
