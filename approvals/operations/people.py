"""Make users, give them roles and take roles away (D33); each act is also an entry of the governance log."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group, User

from approvals.core.errors import BadPerson, PersonNotFound
from approvals.core.people import Role
from approvals.core.persons import PersonRecord, require_group, require_username
from approvals.queries import person_record
from ledger.operations.governance import record_act
from reversi_site.kit.transactions import durable

FIRST_ADMIN = "admin"
SETUP = "reversi:setup"
PASSWORD_BYTES = 15
SHORTEST_PASSWORD = 8


def setup_roles(*, actor: str, now: datetime) -> tuple[str, ...]:
    """Make the groups of the five roles where they are missing; returns the ones made."""
    with durable():
        made = _missing_groups([role.value for role in Role])
        if made:
            record_act(kind="roles_set_up", actor=actor, data={"roles": list(made)}, now=now)
    return made


def _missing_groups(names: Sequence[str]) -> tuple[str, ...]:
    """Make the groups that do not exist yet, within the caller's block."""
    return tuple(name for name in names if Group.objects.get_or_create(name=name)[1])


def ensure_user(*, username: str, roles: Sequence[str], actor: str, now: datetime) -> tuple[PersonRecord, bool]:
    """Return the user, made with these roles when there is none of that name; the flag says whether it is new.

    An existing user keeps its roles. A new one has no password: it can hold keys, and sign in once it was given one.
    """
    name, groups = require_username(username), _groups(roles)
    with durable():
        user, is_new = User.objects.get_or_create(username=name, defaults={"password": make_password(None)})
        if is_new:
            _join(user, groups)
            record_act(kind="user_created", actor=actor, data={"user": name, "roles": list(groups)}, now=now)
    return person_record(user), is_new


def _groups(roles: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(require_group(role) for role in roles))


def _join(user: User, groups: Sequence[str]) -> None:
    _missing_groups(groups)
    user.groups.add(*Group.objects.filter(name__in=groups))


def grant_roles(*, username: str, roles: Sequence[str], actor: str, now: datetime) -> PersonRecord:
    """Put a user into roles or groups of approvers; raises PersonNotFound."""
    groups = _groups(roles)
    with durable():
        user = _locked_user(username)
        _join(user, groups)
        record_act(kind="roles_granted", actor=actor, data={"user": username, "roles": list(groups)}, now=now)
    return person_record(user)


def revoke_roles(*, username: str, roles: Sequence[str], actor: str, now: datetime) -> PersonRecord:
    """Take a user out of roles or groups; what its keys may do shrinks at once. Raises PersonNotFound."""
    groups = _groups(roles)
    with durable():
        user = _locked_user(username)
        user.groups.remove(*Group.objects.filter(name__in=groups))
        record_act(kind="roles_revoked", actor=actor, data={"user": username, "roles": list(groups)}, now=now)
    return person_record(user)


def _locked_user(username: str) -> User:
    user = User.objects.select_for_update().filter(username=username).first()
    if user is None:
        raise PersonNotFound(username)
    return user


def set_password(*, username: str, password: str, actor: str, now: datetime) -> None:
    """Give a user a password for the console; raises PersonNotFound."""
    if len(password) < SHORTEST_PASSWORD:
        raise BadPerson("password", f"at least {SHORTEST_PASSWORD} characters")
    with durable():
        user = _locked_user(username)
        user.set_password(password)
        user.save(update_fields=["password"])
        record_act(kind="password_set", actor=actor, data={"user": username}, now=now)


def ensure_first_admin(*, now: datetime) -> tuple[str, str | None]:
    """Return the name of the first administrator, with a password when nobody could sign in as one until now."""
    with durable():
        admins = User.objects.filter(groups__name=Role.ADMIN, is_active=True)
        if any(user.has_usable_password() for user in admins):
            return FIRST_ADMIN, None
        user, _ = User.objects.get_or_create(username=FIRST_ADMIN)
        password = secrets.token_urlsafe(PASSWORD_BYTES)
        user.set_password(password)
        user.save(update_fields=["password"])
        _join(user, [Role.ADMIN.value])
        record_act(kind="first_admin_made", actor=SETUP, data={"user": FIRST_ADMIN}, now=now)
    return FIRST_ADMIN, password
