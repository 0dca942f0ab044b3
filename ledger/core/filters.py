"""Which runs a reader asks for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class RunFilter:
    """What a run must be to be listed; `actor`, `tenant`, `environment` and `tool` are globs, None asks for nothing."""

    principal: str | None = None
    state: str | None = None
    actor: str | None = None
    tenant: str | None = None
    environment: str | None = None
    tool: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    needs_attention: bool = False
