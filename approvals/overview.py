"""What lists of the gate are asked for: pages of halts and of requests for approval, in a fixed number of queries.

Beside `queries`, which answer about one call, one request or one person.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from approvals.core.halts import HaltRecord
from approvals.core.people import Act, Caller, may
from approvals.core.requests import ApprovalRecord, RequestState
from approvals.models import ApprovalRequest, Halt
from approvals.queries import approval_record, halt_record
from reversi_site.kit.keyset import Page, Place, keyset_page


def page_halts(*, active_only: bool, place: Place | None = None, size: int = 50) -> Page[HaltRecord]:
    """Return a page of the halts, oldest first: one query."""
    rows = Halt.objects.filter(lifted_at__isnull=True) if active_only else Halt.objects.all()
    return keyset_page(rows, columns=("added_at", "id"), is_descending=False, place=place, size=size).of(halt_record)


def page_approvals(
    *,
    now: datetime,
    caller: Caller,
    states: Sequence[RequestState] | None = None,
    run_id: str | None = None,
    place: Place | None = None,
    size: int = 50,
) -> Page[ApprovalRecord]:
    """Return a page of the requests that the caller may see, newest first, without arguments: two queries."""
    rows = _visible(caller).prefetch_related("votes")
    if run_id is not None:
        rows = rows.filter(run_id=run_id)
    if states is not None:
        rows = rows.filter(_any(_standing_at(state, now) for state in states))
    found = keyset_page(rows, columns=("id",), is_descending=True, place=place, size=size)
    return found.of(lambda row: approval_record(row, now=now))


def _visible(caller: Caller) -> QuerySet[ApprovalRequest]:
    rows = ApprovalRequest.objects.all()
    if may(caller, Act.READ_APPROVALS):
        return rows
    wanted = []
    if may(caller, Act.READ_OWN_RUN):
        wanted.append(Q(run_principal=caller.username))
    if may(caller, Act.VOTE):
        rows = rows.annotate(roles_text=Cast("roles", TextField()))
        # Names are of characters that JSON writes as they are.
        wanted += [Q(roles_text__contains=f'"{role}"') for role in sorted(caller.roles)]
    return rows.filter(_any(wanted)) if wanted else rows.none()


def _any(conditions: Iterable[Q]) -> Q:
    found = Q()
    for condition in conditions:
        found |= condition
    return found


def _standing_at(state: RequestState, now: datetime) -> Q:
    """Return the condition for requests that stand so at a time: the rule of `state_at`, for the database."""
    is_late = Q(state=RequestState.PENDING.value, deadline_at__lt=now)
    is_lapsed = Q(state=RequestState.APPROVED.value, use_until__lt=now)
    stored = Q(state=state.value)
    return stored | is_late | is_lapsed if state is RequestState.EXPIRED else stored & ~is_late & ~is_lapsed
