"""Requests for approval as calls meet them: find the one for exactly this call, open it, use it up (D17).

Everything here is part of the caller's durable block and runs under the lock of the run: of many equal calls one opens
the request, and one uses it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from approvals.core.errors import ApprovalSpent
from approvals.core.requests import LIVE, RequestKind, RequestState, deadline_of, state_at
from approvals.core.shown_arguments import shown_arguments
from approvals.core.summary import summarise
from approvals.core.violations import Code, Violation
from approvals.models import ApprovalRequest, SealedArguments
from approvals.operations.admission import Candidate
from approvals.queries import ARGUMENTS
from ledger.core.text import make_visible
from ledger.identifiers import new_ulid
from ledger.key_ring import seal
from ledger.operations.compensations import record_note
from ledger.operations.governance import record_act
from ledger.operations.journal import LockedRun
from ledger.queries import run_record
from manifests_registry.core.snapshot import Entry
from reversi_sdk.canonical import canonical_bytes
from reversi_site.kit.transactions import require_transaction

GATE = "reversi:gate"
REASON = 2000


@dataclass(frozen=True, slots=True)
class Granted:
    """People agreed to exactly this call, and nobody has made it yet."""

    approval_id: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """Nobody has decided yet."""

    approval_id: str


@dataclass(frozen=True, slots=True)
class Denied:
    """Somebody decided against exactly this call."""

    reason: str

    @property
    def violation(self) -> Violation:
        """What speaks against the call."""
        return Violation(Code.APPROVAL_DENIED, f"approval denied: {self.reason}")


Answer: TypeAlias = Granted | Waiting | Denied


def ask(*, run: LockedRun, candidate: Candidate, now: datetime) -> Answer:
    """Return what people said about this call, which has a manifest; a request is opened where none stands."""
    require_transaction()
    entry = candidate.entry
    if entry is None:
        raise ValueError(f"nobody is asked about {candidate.request.tool}: it has no manifest")
    digest = run.keyed_digest(candidate.request.body)
    # Locked: a vote that is being counted is waited for, and what is found here still holds when it is used.
    same = ApprovalRequest.objects.select_for_update().filter(
        run=run.row, kind=RequestKind.CALL, tool=candidate.request.tool, args_digest=digest
    )
    for outdated in same.filter(state__in=LIVE).exclude(manifest_checksum=entry.checksum):
        end_request(outdated, RequestState.CANCELLED, why="the manifest changed", actor=GATE, now=now)
    # At most one of them: beside a live request there is no other, and after a denial none is opened.
    telling = same.filter(manifest_checksum=entry.checksum, state__in=(*LIVE, RequestState.DENIED)).first()
    return _answer(telling, now) or Waiting(_open(run, candidate, entry, digest, now))


def _answer(row: ApprovalRequest | None, now: datetime) -> Answer | None:
    """Return what a request says of a repeat of its call; None when it says nothing any more."""
    if row is None:
        return None
    state = state_at(RequestState(row.state), deadline_at=row.deadline_at, use_until=row.use_until, now=now)
    match state:
        case RequestState.PENDING:
            return Waiting(row.id)
        case RequestState.APPROVED:
            return Granted(row.id)
        case RequestState.DENIED:
            return Denied(row.denied_reason)
        case _:
            end_request(row, RequestState.EXPIRED, why="its time was over", actor=GATE, now=now)
            return None


def _open(run: LockedRun, candidate: Candidate, entry: Entry, digest: str, now: datetime) -> str:
    request, manifest, record = candidate.request, entry.manifest, run_record(run.row)
    row = ApprovalRequest(
        id=f"apr_{new_ulid(now)}",
        kind=RequestKind.CALL,
        run=run.row,
        tool=request.tool,
        args_digest=digest,
        manifest_checksum=entry.checksum,
        state=RequestState.PENDING,
        roles=list(manifest.approval.roles),
        quorum=manifest.approval.quorum,
        deadline_at=deadline_of(manifest.approval.timeout_ms, now=now),
        requested_by=record.agent,
        run_principal=record.principal,
        reason=make_visible(request.reason, limit=REASON),
        summary=summarise(request.tool, manifest, request.args, candidate.redacted),
        effect=manifest.effect.value,
        created_at=now,
    )
    row.save(force_insert=True)
    _seal(row, candidate)
    asked = {"approval": row.id, "tool": row.tool, "summary": row.summary, "roles": row.roles, "quorum": row.quorum}
    record_note(run=run, number=None, kind="approval_requested", data=asked, actor=record.agent, now=now)
    return row.id


def _seal(row: ApprovalRequest, candidate: Candidate) -> None:
    plain = canonical_bytes(shown_arguments(candidate.request.args, candidate.redacted))
    box = seal(plain, purpose=ARGUMENTS, bound_to=(row.id, row.run_id))
    SealedArguments(request=row, key_id=box.key_id, nonce=box.nonce, ciphertext=box.ciphertext).save(force_insert=True)


def use_up(*, run: LockedRun, granted: Granted, number: int, now: datetime) -> None:
    """Use an approval up for the step that is announced in the same block; raises ApprovalSpent when it has ended."""
    require_transaction()
    usable = ApprovalRequest.objects.filter(pk=granted.approval_id, state=RequestState.APPROVED, use_until__gte=now)
    if usable.update(state=RequestState.USED, used_at=now, used_by_step=number) != 1:
        raise ApprovalSpent(granted.approval_id)
    _purge(granted.approval_id)
    data = {"approval": granted.approval_id}
    record_note(run=run, number=number, kind="approval_used", data=data, actor=run_record(run.row).agent, now=now)


def end_request(row: ApprovalRequest, state: RequestState, *, why: str, actor: str, now: datetime) -> None:
    """End a live request that nobody can use any more; its row is locked by the caller's block."""
    require_transaction()
    ApprovalRequest.objects.filter(pk=row.pk, state__in=LIVE).update(state=state)
    _purge(row.pk)
    data = {"approval": row.pk, "run": row.run_id, "was": row.state, "state": state.value, "why": why}
    record_act(kind="approval_ended", actor=actor, data=data, now=now)


def _purge(approval_id: str) -> None:
    SealedArguments.objects.filter(pk=approval_id).delete()
