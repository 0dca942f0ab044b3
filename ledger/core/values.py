"""What the journal takes and gives: runs, steps, events, outcomes as plain values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ledger.core.handles import Handle, HandleLost
from ledger.core.statuses import Mode, ReadBack, RunState, SettledBy, StepState, is_standing

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run as it stands."""

    id: str
    principal: str
    actor: str
    tenant: str
    environment: str
    mode: Mode
    scope: tuple[str, ...]
    reason: str
    labels: Mapping[str, str]
    state: RunState
    is_rolling_back: bool
    fence: int
    next_step: int
    opened_at: datetime
    closed_at: datetime | None
    active_at: datetime

    @property
    def agent(self) -> str:
        """Who calls share a key of scope `actor` with: the actor, else the principal (D16)."""
        return self.actor or self.principal


@dataclass(frozen=True, slots=True)
class Intent:
    """Everything that is committed about a call before it is made.

    `snapshot` maps the tool and every follow-up to the checksum of its manifest document. `args` are the canonical
    bytes of the arguments: only their keyed digest is kept.
    """

    tool: str
    args: bytes
    effect: str | None
    upstream: str
    manifest_checksum: str | None
    snapshot: Mapping[str, str]
    summary: str
    depends_on: tuple[int, ...]
    requires_steps: tuple[int, ...]
    call_key: str | None
    idempotency_key: str | None
    ledger_id: str | None
    timeout_ms: int
    observed_by: str
    handle: Handle
    unrecoverable: str | None = None
    is_contract_rejected: bool = False
    reason: str = ""
    violations: tuple[Mapping[str, str], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended: `succeeded`, `failed` or `uncertain`; the handle replaces the step's."""

    state: StepState
    handle: Handle | None = None
    unrecoverable: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A step as it stands, its handle opened (or lost, with the reason)."""

    run_id: str
    number: int
    tool: str
    state: StepState
    effect: str | None
    upstream: str
    manifest_checksum: str | None
    snapshot: Mapping[str, str]
    args_digest: str
    summary: str
    depends_on: tuple[int, ...]
    requires_steps: tuple[int, ...]
    idempotency_key: str | None
    timeout_ms: int
    observed_by: str
    settled_by: SettledBy | None
    error: str | None
    unrecoverable: str | None
    read_back: ReadBack
    is_disputed: bool
    is_by_hand: bool
    is_undo_outcome_unknown: bool
    is_contract_rejected: bool
    intended_at: datetime
    settled_at: datetime | None
    handle: Handle | HandleLost

    @property
    def is_standing(self) -> bool:
        """Whether the call's effect is, or may be, in the world."""
        return is_standing(self.state, is_disputed=self.is_disputed)


@dataclass(frozen=True, slots=True)
class EventRecord:
    """One journal entry; `data` is None when there is none or it was purged."""

    run_id: str
    seq: int
    kind: str
    at: str
    actor: str
    step: int | None
    data_hash: str | None
    prev: str
    hash: str
    data: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class EventDraft:
    """An event about to be appended."""

    kind: str
    step: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
