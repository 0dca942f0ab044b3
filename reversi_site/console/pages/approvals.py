"""Requests for approval: who asks for what, what it would do, and the votes."""

from __future__ import annotations

from http import HTTPStatus

from django.http import HttpResponse

from approvals.core.errors import NotEligible
from approvals.core.people import Act, may_on_run
from approvals.core.requests import ApprovalRecord, Decision, RequestState, may_see, why_not_vote
from approvals.operations.approvals import cast_vote
from approvals.queries import get_approval, list_approvals
from ledger.queries import get_run
from manifests_registry.core.errors import DocumentAltered, DocumentNotFound
from manifests_registry.queries import get_document
from reversi_sdk.model import Manifest
from reversi_site.console.forms import VoteForm
from reversi_site.console.refusals import refusal_of
from reversi_site.console.visit import Visit, address, page

SHOWN = 50
# Who may see a request is decided request by request: its run's owner, its voters, and who may read all.
READERS = (Act.READ_APPROVALS, Act.VOTE, Act.READ_OWN_RUN)


@page(*READERS)
def approval_list(visit: Visit) -> HttpResponse:
    """List the requests that the caller may see: those that wait, or all."""
    asked = visit.request.GET
    is_all = asked.get("state") == "all"
    states = None if is_all else (RequestState.PENDING, RequestState.APPROVED)
    before = asked.get("before") or None
    found = list_approvals(now=visit.now, caller=visit.caller, states=states, before=before, limit=SHOWN + 1)
    return visit.show(
        "approvals",
        title="Approvals",
        is_all=is_all,
        approvals=found[:SHOWN],
        older=found[SHOWN - 1].id if len(found) > SHOWN else None,
        is_first=before is None,
    )


@page(*READERS)
def approval(visit: Visit, approval_id: str) -> HttpResponse:
    """Show one request, complete; whoever may vote on it finds the buttons here."""
    return _show(visit, _readable(visit, approval_id), VoteForm())


def _readable(visit: Visit, approval_id: str) -> ApprovalRecord:
    found = get_approval(approval_id, now=visit.now)
    if not may_see(visit.caller, found):
        raise NotEligible(found.id, visit.caller.username, "it is about somebody else's call")
    return found


def _show(
    visit: Visit,
    found: ApprovalRecord,
    form: VoteForm,
    *,
    refused: str | None = None,
    status: HTTPStatus = HTTPStatus.OK,
) -> HttpResponse:
    run = get_run(found.run_id)
    return visit.show(
        "approval",
        title="Approval",
        crumbs=[("Approvals", address("approvals"))],
        crumb=found.id,
        status=status,
        approval=found,
        run=run,
        can_read_run=may_on_run(visit.caller, run, own=Act.READ_OWN_RUN, others=Act.READ_ANY_RUN),
        manifest=_manifest(found),
        why_not=why_not_vote(visit.caller, found),
        approvers=sum(vote.decision is Decision.APPROVE for vote in found.votes),
        form=form,
        refused=refused,
    )


def _manifest(found: ApprovalRecord) -> Manifest | None:
    try:
        return get_document(found.manifest_checksum)
    except (DocumentAltered, DocumentNotFound):
        return None


@page(Act.VOTE)
def vote(visit: Visit, approval_id: str) -> HttpResponse:
    """Take a vote."""
    found, form = _readable(visit, approval_id), VoteForm(visit.sent)
    if not form.is_valid():
        return _show(visit, found, form, status=HTTPStatus.BAD_REQUEST)
    refused = refusal_of(
        lambda: cast_vote(
            approval_id=found.id,
            voter=visit.caller,
            decision=form.cleaned_data["decision"],
            reason=form.cleaned_data["reason"],
            now=visit.now,
        )
    )
    if refused is not None:
        return _show(visit, _readable(visit, approval_id), form, refused=refused, status=HTTPStatus.CONFLICT)
    said = "You approved the call." if form.cleaned_data["decision"] == Decision.APPROVE else "You denied the call."
    return visit.done(said, "approval", approval_id=found.id)
