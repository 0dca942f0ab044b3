"""A user as a value, and the names that users and groups may have."""

from __future__ import annotations

import re
from dataclasses import dataclass

from approvals.core.errors import BadPerson
from approvals.core.people import Role

_GROUP = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}", re.ASCII)
_USERNAME = re.compile(r"[\w.@+-]{1,150}")
_ROLES = frozenset(role.value for role in Role)


@dataclass(frozen=True, slots=True)
class PersonRecord:
    """A user and the groups it is in."""

    username: str
    roles: tuple[str, ...]
    is_active: bool


def require_username(name: str) -> str:
    """Return the name when a user can have it; a colon is left to principals that are no users."""
    if not _USERNAME.fullmatch(name):
        raise BadPerson("user", f"{name!r} is no user name: letters, digits and _ . @ + - only, at most 150")
    return name


def require_group(name: str) -> str:
    """Return the name when a role or a group of approvers can have it."""
    if not _GROUP.fullmatch(name):
        raise BadPerson("role", f"{name!r} is no role or group: letters, digits and _ . - only, at most 100")
    if name not in _ROLES and name.lower() in _ROLES:
        raise BadPerson("role", f"{name!r} would be taken for the role {name.lower()}")
    return name
