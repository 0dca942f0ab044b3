"""The first page: what waits for this person, and what is going on."""

from __future__ import annotations

from django.http import HttpResponse

from approvals.core.people import Act
from ledger.overview import RunFilter, page_runs
from reversi_site.console.frame import owner_filter, votable
from reversi_site.console.visit import Visit, page
from rollback.queries import list_live_jobs

SHOWN = 8


@page(Act.SIGN_IN)
def home(visit: Visit) -> HttpResponse:
    """Show what needs attention, newest first."""
    caller, sees_runs = visit.caller, visit.may(Act.READ_ANY_RUN) or visit.may(Act.READ_OWN_RUN)
    owner = owner_filter(caller)
    attention = page_runs(wanted=RunFilter(principal=owner, needs_attention=True), size=SHOWN) if sees_runs else None
    recent = page_runs(wanted=RunFilter(principal=owner), size=SHOWN) if sees_runs else None
    return visit.show(
        "home",
        title="Home",
        is_home=True,
        sees_runs=sees_runs,
        attention=attention,
        recent=recent,
        approvals=votable(caller, visit.now, limit=SHOWN),
        jobs=list_live_jobs() if visit.may(Act.READ_ANY_RUN) else [],
    )
