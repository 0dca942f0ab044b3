"""What the gate can be asked: halts, people and keys, requests for approval. Nothing of it is remembered (D19)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from approvals.core.api_keys import ApiKeyRecord
from approvals.core.errors import ApprovalNotFound, KeyNotFound, PersonNotFound
from approvals.core.halts import HaltRecord, HaltScope, call_fields, halts_call
from approvals.core.people import Act, Caller, Limits, Role, require_on_run
from approvals.core.persons import PersonRecord
from approvals.core.requests import (
    LIVE,
    ApprovalRecord,
    Decision,
    RequestKind,
    RequestState,
    VoteRecord,
    may_see,
    state_at,
)
from approvals.models import ApiKey, ApprovalRequest, Halt, SealedArguments, Vote
from ledger.core.boxes import SealedBox
from ledger.core.text import make_visible
from ledger.core.values import RunRecord
from ledger.key_ring import open_box
from ledger.queries import get_run

UNEXPLAINED = "kill file"
ARGUMENTS = "approval arguments"
_FIRST_LINE = 4096
_SHOWN = 200


def halt_record(row: Halt) -> HaltRecord:
    """Return the halt as a value."""
    return HaltRecord(
        id=row.id,
        scope=HaltScope(row.tool, row.actor, row.tenant, row.environment, row.principal, row.run),
        reason=row.reason,
        added_by=row.added_by,
        added_at=row.added_at,
        lifted_by=row.lifted_by,
        lifted_at=row.lifted_at,
    )


def list_halts(*, active_only: bool = True) -> Sequence[HaltRecord]:
    """Return the halts, oldest first; the lifted ones too when asked."""
    rows = Halt.objects.order_by("added_at", "id")
    if active_only:
        rows = rows.filter(lifted_at__isnull=True)
    return [halt_record(row) for row in rows]


def list_halt_reasons(*, run: RunRecord, tool: str) -> tuple[str, ...]:
    """Return why a call of the run is halted now: the kill file first, then the halts that match."""
    call: Mapping[str, str] = call_fields(run, tool)
    stored = (halt.reason for halt in list_halts() if halts_call(halt.scope, call))
    by_file = kill_reason(settings.CONFIGURATION.kill_switch_file)
    return (*(() if by_file is None else (by_file,)), *stored)


def kill_reason(path: Path | None) -> str | None:
    """Return the first line of the kill file, or None when there is none.

    A file that is there and cannot be read, or a place that cannot be looked at, halts: whoever pulls a kill switch
    must not depend on its permissions.
    """
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            text = file.readline(_FIRST_LINE).decode("utf-8", errors="replace").strip()
    except FileNotFoundError:
        return UNEXPLAINED if path.is_symlink() else None
    except NotADirectoryError:
        return None
    except OSError:
        return UNEXPLAINED
    return make_visible(text, limit=_SHOWN) or UNEXPLAINED


def get_run_for(*, caller: Caller, run_id: str, own: Act | None, others: Act | None) -> RunRecord:
    """Return the run when the caller may do this to it; raises RunNotFound and what `require_on_run` raises."""
    run = get_run(run_id)
    require_on_run(caller, run, own=own, others=others)
    return run


def get_caller(username: str) -> Caller:
    """Return a user as a caller without a key; raises PersonNotFound, for one that was put out of use too."""
    user = User.objects.filter(username=username, is_active=True).first()
    if user is None:
        raise PersonNotFound(username)
    return Caller(user.username, groups_of(user))


def groups_of(user: User) -> frozenset[str]:
    """Return the roles and groups of a user; who is above all permissions of the framework is an admin."""
    names = frozenset(user.groups.values_list("name", flat=True))
    return names | {Role.ADMIN.value} if user.is_superuser else names


def list_people() -> Sequence[PersonRecord]:
    """Return every user, by name."""
    return [person_record(user) for user in User.objects.order_by("username").prefetch_related("groups")]


def person_record(user: User) -> PersonRecord:
    """Return a user as a value."""
    roles = {group.name for group in user.groups.all()} | ({Role.ADMIN.value} if user.is_superuser else set())
    return PersonRecord(user.username, tuple(sorted(roles)), user.is_active)


def list_api_keys(*, owner: str | None = None) -> Sequence[ApiKeyRecord]:
    """Return the keys, newest first."""
    rows = ApiKey.objects.select_related("owner").order_by("-created_at", "-id")
    if owner is not None:
        rows = rows.filter(owner__username=owner)
    return [api_key_record(row) for row in rows]


def get_api_key(prefix: str) -> ApiKeyRecord:
    """Return one key; raises KeyNotFound."""
    row = ApiKey.objects.select_related("owner").filter(prefix=prefix).first()
    if row is None:
        raise KeyNotFound(prefix)
    return api_key_record(row)


def api_key_record(row: ApiKey) -> ApiKeyRecord:
    """Return the key as a value."""
    return ApiKeyRecord(
        prefix=row.prefix,
        owner=row.owner.username,
        label=row.label,
        roles=None if row.roles is None else tuple(row.roles),
        limits=Limits(tuple(row.scope), tuple(row.modes), row.actor, row.tenant, row.environment),
        expires_at=row.expires_at,
        created_at=row.created_at,
        created_by=row.created_by,
        last_used_at=row.last_used_at,
        revoked_at=row.revoked_at,
        revoked_by=row.revoked_by,
    )


def get_approval(approval_id: str, *, now: datetime) -> ApprovalRecord:
    """Return a request as it stands now, with its arguments and votes; raises ApprovalNotFound."""
    row = ApprovalRequest.objects.filter(pk=approval_id).select_related("sealed_arguments").first()
    if row is None:
        raise ApprovalNotFound(approval_id)
    return approval_record(row, now=now, has_arguments=True)


def awaits_approved_call(run_id: str, *, now: datetime) -> bool:
    """Tell whether a call of the run waits for votes, or was agreed to and may still be made."""
    pending = Q(state=RequestState.PENDING.value, deadline_at__gt=now)
    agreed = Q(state=RequestState.APPROVED.value, use_until__gt=now)
    return ApprovalRequest.objects.filter(pending | agreed, run_id=run_id, kind=RequestKind.CALL.value).exists()


def list_approvals(
    *,
    now: datetime,
    caller: Caller | None = None,
    states: Sequence[RequestState] | None = None,
    run_id: str | None = None,
    principal: str | None = None,
    before: str | None = None,
    limit: int = 100,
) -> Sequence[ApprovalRecord]:
    """Return requests, newest first, with votes and without arguments; `before` is the id to go on after.

    With a `caller` only those that the caller may see.
    """
    rows = _requests(states, run_id, principal, before)
    records = (approval_record(row, now=now) for row in rows.iterator(chunk_size=200))
    seen = (record for record in records if states is None or record.state in states)
    found = (record for record in seen if caller is None or may_see(caller, record))
    return [record for record, _ in zip(found, range(limit), strict=False)]


def _requests(
    states: Sequence[RequestState] | None, run_id: str | None, principal: str | None, before: str | None
) -> QuerySet[ApprovalRequest]:
    rows = ApprovalRequest.objects.order_by("-pk").prefetch_related("votes")
    if states is not None:
        # What is stored as live may have expired by now.
        stored = {*states, *LIVE} if RequestState.EXPIRED in states else set(states)
        rows = rows.filter(state__in=sorted(stored))
    if before is not None:
        rows = rows.filter(pk__lt=before)
    named = {"run_id": run_id, "run_principal": principal}
    return rows.filter(**{column: value for column, value in named.items() if value is not None})


def approval_record(row: ApprovalRequest, *, now: datetime, has_arguments: bool = False) -> ApprovalRecord:
    """Return the request as it stands at a time."""
    state = state_at(RequestState(row.state), deadline_at=row.deadline_at, use_until=row.use_until, now=now)
    return ApprovalRecord(
        id=row.id,
        kind=RequestKind(row.kind),
        run_id=row.run_id,
        step=row.step,
        tool=row.tool,
        args_digest=row.args_digest,
        manifest_checksum=row.manifest_checksum,
        state=state,
        roles=tuple(row.roles),
        quorum=row.quorum,
        deadline_at=row.deadline_at,
        use_until=row.use_until,
        requested_by=row.requested_by,
        run_principal=row.run_principal,
        reason=row.reason,
        summary=row.summary,
        effect=row.effect,
        arguments=_arguments(row) if has_arguments and state in LIVE else None,
        created_at=row.created_at,
        answered_at=row.answered_at,
        used_at=row.used_at,
        used_by_step=row.used_by_step,
        denied_reason=row.denied_reason,
        votes=tuple(_vote_record(vote) for vote in sorted(row.votes.all(), key=lambda vote: vote.pk)),
    )


def _vote_record(row: Vote) -> VoteRecord:
    return VoteRecord(row.voter, Decision(row.decision), row.role, row.reason, row.at)


def _arguments(row: ApprovalRequest) -> Mapping[str, Any] | None:
    sealed: SealedArguments | None = getattr(row, "sealed_arguments", None)
    if sealed is None:
        return None
    box = SealedBox(sealed.key_id, bytes(sealed.nonce), bytes(sealed.ciphertext))
    plain = open_box(box, purpose=ARGUMENTS, bound_to=(row.id, row.run_id))
    opened: Mapping[str, Any] | None = None if plain is None else json.loads(plain)
    return opened
