"""Requests for approval and the votes on them, as values (D17).

A request is for one exact call. It is answered by votes of people who hold one of its roles, never by the owner of the
run; one denial denies, and the quorum approves whatever the order in which the votes came.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from approvals.core.people import Act, Caller, Role, may
from reversi_sdk.model import Effect

USUAL_TIMEOUT_MS = 24 * 60 * 60_000
SHORTEST_USE = timedelta(minutes=15)
# Who votes where the manifest names no role.
USUAL_VOTERS = (Role.OPERATOR.value, Role.ADMIN.value)


class RequestKind(StrEnum):
    """What a request is about: a call before it is made, or the undo of a step."""

    CALL = "call"
    COMPENSATION = "compensation"


class RequestState(StrEnum):
    """Where a request stands."""

    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    USED = "used"


LIVE = (RequestState.PENDING, RequestState.APPROVED)


class Decision(StrEnum):
    """What a vote says."""

    APPROVE = "approve"
    DENY = "deny"


@dataclass(frozen=True, slots=True)
class VoteRecord:
    """One person's vote; `role` is the group by which they were eligible."""

    voter: str
    decision: Decision
    role: str
    reason: str
    at: datetime

    def to_json(self) -> dict[str, Any]:
        """Return the vote as the interface shows it."""
        return {
            "voter": self.voter,
            "decision": self.decision.value,
            "role": self.role,
            "reason": self.reason,
            "at": _time(self.at),
        }


@dataclass(frozen=True, slots=True)
class ApprovalRecord:
    """A request as it stands at a moment.

    `arguments` are the complete canonical arguments without what is redacted; None where they were not asked for, or
    are gone since the request ended.
    """

    id: str
    kind: RequestKind
    run_id: str
    step: int | None
    tool: str
    args_digest: str
    manifest_checksum: str
    state: RequestState
    roles: tuple[str, ...]
    quorum: int
    deadline_at: datetime
    use_until: datetime | None
    requested_by: str
    run_principal: str
    reason: str
    summary: str
    effect: str
    arguments: Mapping[str, Any] | None
    created_at: datetime
    answered_at: datetime | None
    used_at: datetime | None
    used_by_step: int | None
    denied_reason: str
    votes: tuple[VoteRecord, ...] = ()

    @property
    def effect_label(self) -> str:
        """What the call does to the world, in the words for people."""
        return Effect(self.effect).label

    @property
    def voter_roles(self) -> tuple[str, ...]:
        """The groups whose members may vote."""
        return self.roles or USUAL_VOTERS

    def to_json(self) -> dict[str, Any]:
        """Return the request as the interface shows it."""
        return {
            "id": self.id,
            "kind": self.kind.value,
            "run_id": self.run_id,
            "step": self.step,
            "tool": self.tool,
            "effect": self.effect,
            "effect_label": self.effect_label,
            "summary": self.summary,
            "reason": self.reason,
            "arguments": None if self.arguments is None else dict(self.arguments),
            "args_digest": self.args_digest,
            "manifest": self.manifest_checksum,
            "state": self.state.value,
            "roles": list(self.roles),
            "quorum": self.quorum,
            "requested_by": self.requested_by,
            "principal": self.run_principal,
            "created_at": _time(self.created_at),
            "deadline_at": _time(self.deadline_at),
            "answered_at": _time(self.answered_at),
            "use_until": _time(self.use_until),
            "used_at": _time(self.used_at),
            "used_by_step": self.used_by_step,
            "denied_reason": self.denied_reason or None,
            "votes": [vote.to_json() for vote in self.votes],
        }


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.strftime("%Y-%m-%dT%H:%M:%SZ")


def state_at(state: RequestState, *, deadline_at: datetime, use_until: datetime | None, now: datetime) -> RequestState:
    """Return where a request stands at a time: what was not answered, or not used, in time has expired."""
    is_late = state is RequestState.PENDING and now > deadline_at
    is_lapsed = state is RequestState.APPROVED and use_until is not None and now > use_until
    return RequestState.EXPIRED if is_late or is_lapsed else state


def deadline_of(timeout_ms: int | None, *, now: datetime) -> datetime:
    """Return until when a request opened now can be answered."""
    return now + timedelta(milliseconds=USUAL_TIMEOUT_MS if timeout_ms is None else timeout_ms)


def use_until(*, created_at: datetime, deadline_at: datetime, answered_at: datetime) -> datetime:
    """Return until when an approval can be used: as long as there was to answer it, at least a quarter of an hour."""
    return answered_at + max(deadline_at - created_at, SHORTEST_USE)


def tally(votes: Iterable[VoteRecord], *, quorum: int, owner: str) -> RequestState:
    """Return what the votes come to; neither their order nor repeats nor the owner's own votes matter."""
    decisive = {(vote.voter, vote.decision) for vote in votes if vote.voter != owner}
    if any(decision is Decision.DENY for _, decision in decisive):
        return RequestState.DENIED
    return RequestState.APPROVED if len(decisive) >= quorum else RequestState.PENDING


def voting_role(caller: Caller, approval: ApprovalRecord) -> str | None:
    """Return the group by which the caller may vote on the request, or None."""
    if not may(caller, Act.VOTE):
        return None
    return next((role for role in approval.voter_roles if role in caller.roles), None)


def why_not_eligible(caller: Caller, approval: ApprovalRecord) -> str | None:
    """Say why this person cannot ever vote on this request, or None."""
    if caller.username == approval.run_principal:
        return "nobody approves the calls of their own run"
    if voting_role(caller, approval) is None:
        return f"only {' or '.join(approval.voter_roles)} may vote on it"
    return None


def why_not_vote(caller: Caller, approval: ApprovalRecord) -> str | None:
    """Say why this person cannot vote on this request as it stands, or None."""
    if approval.state is not RequestState.PENDING:
        return f"it is already {approval.state.value}"
    if any(vote.voter == caller.username for vote in approval.votes):
        return "you have voted on it"
    return why_not_eligible(caller, approval)


def may_see(caller: Caller, approval: ApprovalRecord) -> bool:
    """Tell whether the caller may look at a request: its run's owner, who may vote on it, who may read all."""
    is_owner = caller.username == approval.run_principal and may(caller, Act.READ_OWN_RUN)
    return is_owner or may(caller, Act.READ_APPROVALS) or voting_role(caller, approval) is not None
