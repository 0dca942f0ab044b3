"""The journal's tables in the console, to be read. Sealed values and salts have no page."""

from __future__ import annotations

import json

from django.contrib import admin

from ledger.models import Event, GovernanceEvent, Run, Step
from reversi_site.kit.admin import ReadOnlyAdmin


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    """Runs as they are stored."""

    list_display = ("__str__", "state", "mode", "principal", "actor", "environment", "next_step", "opened_at")
    list_filter = ("state", "mode", "is_rolling_back")
    search_fields = ("id", "principal", "actor", "reason")
    ordering = ("-opened_at", "-id")


@admin.register(Step)
class StepAdmin(ReadOnlyAdmin):
    """Steps as they are stored; the digests of call keys and arguments are of use to nobody who reads."""

    list_display = ("__str__", "state", "tool", "effect", "read_back", "intended_at", "settled_at")
    list_filter = ("state", "effect", "read_back", "is_disputed", "is_by_hand")
    search_fields = ("run__id", "tool", "summary")
    ordering = ("-pk",)
    exclude = ("call_key",)


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    """The entries of the journal, with the hashes that chain them."""

    list_display = ("__str__", "kind", "step", "actor", "at", "hash")
    list_filter = ("kind",)
    search_fields = ("run__id", "actor")
    ordering = ("-pk",)
    list_select_related = ("run",)


@admin.register(GovernanceEvent)
class GovernanceEventAdmin(ReadOnlyAdmin):
    """The acts outside runs, with the hashes that chain them."""

    list_display = ("__str__", "kind", "actor", "at", "hash")
    list_filter = ("kind",)
    search_fields = ("actor", "kind")
    ordering = ("-seq",)
    fields = ("seq", "kind", "at", "actor", "shown_data", "data_hash", "prev", "hash")
    readonly_fields = ("shown_data",)

    @admin.display(description="data")
    def shown_data(self, event: GovernanceEvent) -> str:
        """Return the data as text."""
        return json.dumps(json.loads(bytes(event.data)), ensure_ascii=False, indent=2)
