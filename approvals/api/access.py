"""Whether a caller may use a route: what `settings.API_AUTHORIZE` names."""

from __future__ import annotations

from approvals.core.people import Act, Caller, require
from approvals.queries import get_run_for
from ledger.core.errors import RunNotFound
from ledger.core.values import RUN_ID
from reversi_site.kit.api.views import Right


def authorize(*, caller: Caller, right: Right, run_id: str | None) -> None:
    """Raise unless the caller has the right: on the run where the route names one.

    Raises RunNotFound, ForeignRun, NotPermitted and WiderThanKey.
    """
    own, others = _act(right.own), _act(right.others)
    if run_id is not None:
        get_run_for(caller=caller, run_id=existing_form(run_id), own=own, others=others)
    elif own is not None:
        require(caller, own)


def existing_form(run_id: str) -> str:
    """Return the id when a run can have it; raises RunNotFound."""
    if not RUN_ID.fullmatch(run_id):
        raise RunNotFound("of that id: it has not the form of one")
    return run_id


def _act(name: str | None) -> Act | None:
    return None if name is None else Act(name)
