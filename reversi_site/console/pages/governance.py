"""The governance log, and the records behind everything: to be read, never changed."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from django.contrib import admin
from django.http import HttpResponse

from approvals.core.people import Act
from ledger.overview import page_acts
from ledger.queries import check_governance_chain
from reversi_site.console.paging import as_query, read_place
from reversi_site.console.visit import Visit, address, page
from reversi_site.console.words import words

ACTS_SHOWN = 50


@page(Act.EXPORT)
def governance(visit: Visit) -> HttpResponse:
    """Show who did what outside runs, newest first."""
    asked = visit.request.GET
    acts = page_acts(place=read_place(asked, _place_values), size=ACTS_SHOWN)
    return visit.show(
        "governance",
        title="Governance log",
        acts=acts.items,
        older=as_query(acts.next, {}),
        newer=as_query(acts.previous, {}),
        chain=check_governance_chain() if "check" in asked else None,
    )


def _place_values(parts: list[str]) -> tuple[Any, ...]:
    (seq,) = parts
    return (int(seq),)


@page(Act.EXPORT)
def records(visit: Visit) -> HttpResponse:
    """List the tables that can be looked into, by the app that keeps them."""
    tables: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for model in admin.site._registry:
        route = f"{model._meta.app_label}_{model._meta.model_name}_changelist"
        app = words(model._meta.app_label).capitalize()
        tables[app].append((str(model._meta.verbose_name_plural).capitalize(), address(route)))
    return visit.show("records", title="Records", tables=sorted(tables.items()))
