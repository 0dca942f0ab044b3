"""The form of an API key, and a key as a value (D33). Keys are never kept: they are long enough to be hashed once."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from approvals.core.people import Limits

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
PREFIX_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
PREFIX_LENGTH = 10
SECRET_LENGTH = 43
_TOKEN = re.compile(rf"rk_([a-z0-9]{{{PREFIX_LENGTH}}})_[A-Za-z0-9]{{{SECRET_LENGTH}}}", re.ASCII)


def make_token(prefix: str, secret: str) -> str:
    """Return the key as its owner gets it."""
    return f"rk_{prefix}_{secret}"


def prefix_of(token: str) -> str | None:
    """Return the part by which a key is found, or None for what has not the form of one."""
    found = _TOKEN.fullmatch(token)
    return found[1] if found else None


def token_digest(token: str) -> str:
    """Return what is stored of a key."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class ApiKeyRecord:
    """A key as it stands; `roles` is None when it can do whatever its owner can."""

    prefix: str
    owner: str
    label: str
    roles: tuple[str, ...] | None
    limits: Limits
    expires_at: datetime | None
    created_at: datetime
    created_by: str
    last_used_at: datetime | None
    revoked_at: datetime | None
    revoked_by: str | None

    def is_usable(self, now: datetime) -> bool:
        """Whether it was neither revoked nor has expired."""
        return self.revoked_at is None and not self.is_expired(now)

    def is_expired(self, now: datetime) -> bool:
        """Whether its time is over."""
        return self.expires_at is not None and now >= self.expires_at

    def to_json(self) -> dict[str, Any]:
        """Return the key as the interface shows it."""
        return {
            "prefix": self.prefix,
            "owner": self.owner,
            "label": self.label,
            "roles": None if self.roles is None else list(self.roles),
            "scope": list(self.limits.scope),
            "modes": list(self.limits.modes),
            "actor": self.limits.actor,
            "tenant": self.limits.tenant,
            "environment": self.limits.environment,
            "expires_at": _time(self.expires_at),
            "created_at": _time(self.created_at),
            "created_by": self.created_by,
            "last_used_at": _time(self.last_used_at),
            "revoked_at": _time(self.revoked_at),
            "revoked_by": self.revoked_by,
        }


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.strftime("%Y-%m-%dT%H:%M:%SZ")
