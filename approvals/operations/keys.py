"""Make, revoke and check API keys (D33). A key is shown once; only its hash is stored."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db.models import Q

from approvals.core.api_keys import (
    ALPHABET,
    PREFIX_ALPHABET,
    PREFIX_LENGTH,
    SECRET_LENGTH,
    ApiKeyRecord,
    make_token,
    prefix_of,
    token_digest,
)
from approvals.core.errors import (
    BadPerson,
    KeyExpired,
    KeyNotFound,
    KeyRevoked,
    KeyUnknown,
    MoreThanOwner,
    PersonNotFound,
)
from approvals.core.people import Caller, Limits
from approvals.core.persons import require_group
from approvals.models import LABEL, NAME, ApiKey
from approvals.queries import api_key_record, groups_of
from ledger.core.statuses import Mode
from ledger.core.text import require_text
from ledger.operations.governance import record_act
from reversi_site.kit.transactions import durable

NOTED_AT_MOST_EVERY = timedelta(minutes=1)
# Compared with where no key has the prefix, so that the answer takes as long.
_NOBODYS_DIGEST = token_digest("")


def create_key(
    *,
    owner: str,
    actor: str,
    now: datetime,
    label: str = "",
    roles: Sequence[str] | None = None,
    scope: Sequence[str] = ("*",),
    modes: Sequence[str] = (Mode.ENFORCE.value,),
    fixed_actor: str | None = None,
    fixed_tenant: str | None = None,
    fixed_environment: str | None = None,
    expires_at: datetime | None = None,
) -> tuple[ApiKeyRecord, str]:
    """Make a key for a user and return it: the only time that anybody sees it.

    `roles` leaves out what the key shall not do; None means whatever its owner may. Raises PersonNotFound,
    MoreThanOwner and BadPerson.
    """
    limits = _limits(scope, modes, fixed_actor, fixed_tenant, fixed_environment)
    if expires_at is not None and expires_at <= now:
        raise BadPerson("expires", "must be in the future")
    prefix, secret = _random(PREFIX_ALPHABET, PREFIX_LENGTH), _random(ALPHABET, SECRET_LENGTH)
    token = make_token(prefix, secret)
    with durable():
        user = _owner(owner)
        row = ApiKey(
            prefix=prefix,
            secret_hash=token_digest(token),
            owner=user,
            label=require_text("label", label, limit=LABEL),
            roles=None if roles is None else _held(user, roles),
            scope=list(limits.scope),
            modes=list(limits.modes),
            expires_at=expires_at,
            created_at=now,
            created_by=actor,
            **limits.fixed,
        )
        row.save(force_insert=True)
        record = api_key_record(row)
        record_act(kind="key_created", actor=actor, data=record.to_json(), now=now)
    return record, token


def _random(alphabet: str, length: int) -> str:
    return "".join(secrets.choice(alphabet) for _ in range(length))


def _limits(
    scope: Sequence[str], modes: Sequence[str], actor: str | None, tenant: str | None, environment: str | None
) -> Limits:
    unknown = [mode for mode in modes if mode not in list(Mode)]
    if unknown or not modes:
        raise BadPerson("mode", f"must be enforce or observe, not {', '.join(unknown) or 'nothing'}")
    named = {"actor": actor, "tenant": tenant, "environment": environment}
    fixed = {field: None if value is None else _filled(field, value) for field, value in named.items()}
    entries = tuple(dict.fromkeys(_filled("scope", entry) for entry in scope))
    return Limits(scope=entries, modes=tuple(dict.fromkeys(modes)), **fixed)


def _filled(part: str, value: str) -> str:
    if not require_text(part, value, limit=NAME).strip():
        raise BadPerson(part, "must not be blank")
    return value


def _owner(username: str) -> User:
    user = User.objects.filter(username=username).first()
    if user is None:
        raise PersonNotFound(username)
    return user


def _held(user: User, roles: Sequence[str]) -> list[str]:
    wanted = sorted({require_group(role) for role in roles})
    missing = [role for role in wanted if role not in groups_of(user)]
    if missing:
        raise MoreThanOwner(user.username, missing)
    return wanted


def revoke_key(*, prefix: str, actor: str, now: datetime) -> ApiKeyRecord:
    """Revoke a key at once; one that was revoked before stays as it is. Raises KeyNotFound."""
    with durable():
        row = ApiKey.objects.select_for_update(of=("self",)).select_related("owner").filter(prefix=prefix).first()
        if row is None:
            raise KeyNotFound(prefix)
        if row.revoked_at is None:
            row.revoked_at, row.revoked_by = now, actor
            row.save(update_fields=["revoked_at", "revoked_by"])
            record_act(kind="key_revoked", actor=actor, data={"prefix": prefix, "owner": row.owner.username}, now=now)
    return api_key_record(row)


def authenticate(*, token: str, now: datetime) -> Caller:
    """Return who asks with this key; raises KeyUnknown, KeyExpired or KeyRevoked.

    Only whoever holds the whole key learns that it has expired or was revoked.
    """
    row = ApiKey.objects.select_related("owner").filter(prefix=prefix_of(token) or "").first()
    is_right = hmac.compare_digest(token_digest(token), _NOBODYS_DIGEST if row is None else row.secret_hash)
    if row is None or not is_right:
        raise KeyUnknown
    key = api_key_record(row)
    if key.revoked_at is not None or not row.owner.is_active:
        raise KeyRevoked
    if key.is_expired(now):
        raise KeyExpired
    _note_use(row, now)
    held = groups_of(row.owner)
    roles = held if key.roles is None else held & frozenset(key.roles)
    return Caller(row.owner.username, roles, key.limits, key.prefix)


def _note_use(row: ApiKey, now: datetime) -> None:
    """Write down that the key was used, at most once a minute: a request should not need the store's write lock."""
    before = now - NOTED_AT_MOST_EVERY
    if row.last_used_at is not None and row.last_used_at > before:
        return
    not_since = Q(last_used_at__isnull=True) | Q(last_used_at__lte=before)
    with durable():
        ApiKey.objects.filter(not_since, pk=row.pk).update(last_used_at=now)
