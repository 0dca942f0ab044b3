"""Vote on requests for approval, and end those whose time is over (D17).

Votes, and what ended a request, stand in the governance log. A vote locks its request and never a run, so that it
cannot wait for a call that waits for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.conf import settings
from django.db.models import Q

from approvals.core.errors import AlreadyVoted, ApprovalAnswered, ApprovalNotFound, BadCall, NotEligible
from approvals.core.people import Act, Caller, require_on_run
from approvals.core.requests import (
    LIVE,
    ApprovalRecord,
    Decision,
    RequestState,
    VoteRecord,
    tally,
    use_until,
    voting_role,
    why_not_eligible,
)
from approvals.models import ApprovalRequest, SealedArguments, Vote
from approvals.operations.requests import end_request
from approvals.queries import approval_record, get_approval
from ledger.core.statuses import RunState
from ledger.core.text import make_visible, require_text
from ledger.operations.governance import record_act
from ledger.queries import get_run
from manifests_registry.queries import current_snapshot
from reversi_site.kit.transactions import durable

REASON = 2000
UNEXPLAINED = "no reason given"
DEADLINES = "reversi:deadlines"


def cast_vote(
    *, approval_id: str, voter: Caller, decision: Decision | str, now: datetime, reason: str = "", via: str = ""
) -> ApprovalRecord:
    """Vote on a request; one denial denies it, and the last approval of its quorum approves it.

    `via` says how the voter was known, where that is not by signing in. Raises ApprovalNotFound, NotEligible,
    AlreadyVoted, and ApprovalAnswered for a request that takes no more votes.
    """
    choice = _decision(decision)
    text = make_visible(require_text("reason", reason, limit=REASON).strip(), limit=REASON)
    with durable():
        row = ApprovalRequest.objects.select_for_update().filter(pk=approval_id).first()
        if row is None:
            raise ApprovalNotFound(approval_id)
        vote = VoteRecord(voter.username, choice, _require_may_vote(row, voter, now), text, now)
        _insert(row, vote)
        outcome = _count(row, vote, now)
        act = {"approval": row.id, "run": row.run_id, **vote.to_json(), "state": outcome.value, "via": via}
        record_act(kind="approval_voted", actor=voter.username, data=act, now=now)
    return get_approval(approval_id, now=now)


def _decision(word: str) -> Decision:
    if word not in list(Decision):
        raise BadCall("decision", f"must be approve or deny, not {word!r}")
    return Decision(word)


def _require_may_vote(row: ApprovalRequest, voter: Caller, now: datetime) -> str:
    """Return the role by which the voter votes; raises where the voter or the request is past it."""
    record = approval_record(row, now=now)
    why, role = why_not_eligible(voter, record), voting_role(voter, record)
    if why is not None or role is None:
        raise NotEligible(record.id, voter.username, why or "no role of theirs votes on it")
    require_on_run(voter, get_run(record.run_id), own=None, others=Act.VOTE)
    if any(vote.voter == voter.username for vote in record.votes):
        raise AlreadyVoted(record.id, voter.username)
    if record.state is not RequestState.PENDING:
        raise ApprovalAnswered(record.id, record.state.value)
    return role


def _insert(row: ApprovalRequest, vote: VoteRecord) -> None:
    Vote(
        request=row,
        voter=vote.voter,
        decision=vote.decision,
        role=vote.role,
        reason=vote.reason,
        at=vote.at,
    ).save(force_insert=True)


def _count(row: ApprovalRequest, vote: VoteRecord, now: datetime) -> RequestState:
    outcome = tally(approval_record(row, now=now).votes, quorum=row.quorum, owner=row.run_principal)
    changes: dict[str, object] = {"state": outcome, "answered_at": now}
    if outcome is RequestState.PENDING:
        return outcome
    if outcome is RequestState.APPROVED:
        changes["use_until"] = use_until(created_at=row.created_at, deadline_at=row.deadline_at, answered_at=now)
    else:
        changes["denied_reason"] = vote.reason or UNEXPLAINED
        SealedArguments.objects.filter(pk=row.pk).delete()
    ApprovalRequest.objects.filter(pk=row.pk, state=RequestState.PENDING).update(**changes)
    return outcome


def expire_approvals(*, now: datetime) -> int:
    """End every request that can no longer be answered or used; returns how many that were.

    Its time is over, its run is closed, or the manifest that it was asked under is not the current one any more.
    """
    ended = 0
    for approval_id, state, why in list(_over(now)):
        with durable():
            for row in ApprovalRequest.objects.select_for_update().filter(pk=approval_id, state__in=LIVE):
                end_request(row, state, why=why, actor=DEADLINES, now=now)
                ended += 1
    return ended


def _over(now: datetime) -> Iterator[tuple[str, RequestState, str]]:
    live = ApprovalRequest.objects.filter(state__in=LIVE)
    late = Q(state=RequestState.PENDING, deadline_at__lt=now) | Q(state=RequestState.APPROVED, use_until__lt=now)
    for approval_id in live.filter(late).values_list("pk", flat=True):
        yield approval_id, RequestState.EXPIRED, "its time was over"
    for approval_id in live.filter(run__state=RunState.CLOSED).values_list("pk", flat=True):
        yield approval_id, RequestState.CANCELLED, "its run was closed"
    registry = current_snapshot(settings.CONFIGURATION.manifests)
    for approval_id, tool, checksum in live.values_list("pk", "tool", "manifest_checksum"):
        entry = registry.get(tool)
        if entry is not None and entry.checksum != checksum:
            yield approval_id, RequestState.CANCELLED, "the manifest changed"
