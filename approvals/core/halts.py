"""Halts: stored words that stop new calls, never the way back (D19).

A halt names globs; a call matches when every named field matches. A field that the call lacks matches no glob, so a
halt on one tenant never stops the calls of runs without a tenant. A halt that names nothing stops every call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from fnmatch import fnmatchcase

from ledger.core.values import RunRecord


@dataclass(frozen=True, slots=True)
class HaltScope:
    """Globs by field; None is a field that the halt does not name."""

    tool: str | None = None
    actor: str | None = None
    tenant: str | None = None
    environment: str | None = None
    principal: str | None = None
    run: str | None = None

    def to_json(self) -> dict[str, str]:
        """Return the named fields only."""
        named = ((part.name, getattr(self, part.name)) for part in fields(self))
        return {name: glob for name, glob in named if glob is not None}


@dataclass(frozen=True, slots=True)
class HaltRecord:
    """A halt as it stands."""

    id: str
    scope: HaltScope
    reason: str
    added_by: str
    added_at: datetime
    lifted_by: str | None
    lifted_at: datetime | None


def call_fields(run: RunRecord, tool: str) -> Mapping[str, str]:
    """Return what a halt can look at in a call."""
    return {
        "tool": tool,
        "actor": run.actor,
        "tenant": run.tenant,
        "environment": run.environment,
        "principal": run.principal,
        "run": run.id,
    }


def halts_call(scope: HaltScope, call: Mapping[str, str]) -> bool:
    """Tell whether a halt of that scope stops the call."""
    return all(call[name] != "" and fnmatchcase(call[name], glob) for name, glob in scope.to_json().items())
