"""The gate's tables in the console, to be read. Sealed arguments and the hashes of keys have no page."""

from __future__ import annotations

from django.contrib import admin

from approvals.models import ApiKey, ApprovalRequest, Halt, Vote
from reversi_site.kit.admin import ReadOnlyAdmin


@admin.register(Halt)
class HaltAdmin(ReadOnlyAdmin):
    """Halts, lifted ones too."""

    list_display = ("__str__", "reason", "tool", "actor", "added_by", "added_at", "lifted_by", "lifted_at")
    search_fields = ("id", "reason", "added_by")
    ordering = ("-added_at", "-id")


@admin.register(ApprovalRequest)
class ApprovalRequestAdmin(ReadOnlyAdmin):
    """Requests for approval, without their arguments."""

    list_display = ("__str__", "state", "kind", "tool", "run_id", "requested_by", "created_at", "answered_at")
    list_filter = ("state", "kind")
    search_fields = ("id", "tool", "run__id", "requested_by")
    ordering = ("-pk",)


@admin.register(Vote)
class VoteAdmin(ReadOnlyAdmin):
    """Votes on requests."""

    list_display = ("__str__", "decision", "role", "reason", "at")
    list_filter = ("decision",)
    search_fields = ("request__id", "voter")
    ordering = ("-pk",)


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    """Keys by their public part."""

    list_display = ("__str__", "owner", "label", "created_by", "created_at", "last_used_at", "expires_at", "revoked_at")
    search_fields = ("prefix", "owner__username", "label")
    ordering = ("-created_at", "-pk")
    list_select_related = ("owner",)
    exclude = ("secret_hash",)
