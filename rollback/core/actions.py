"""One line of a plan: what will be done about a step, and why (D22)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from rollback.core.steps import Role
from rollback.core.undo import time_text

RECONCILE = "outcome unknown: reconcile with the downstream system"
DISPUTED = "outcome disputed: reconcile with the downstream system and resolve it again"
IN_DOUBT = (
    "outcome of its undo unknown: look at the downstream system, then resolve it compensated (it was undone)"
    " or succeeded (it was not)"
)
OVERTAKEN = (
    "an earlier step on the same things is undone already, and this undo would bring its effect back:"
    " look, and resolve it compensated by hand"
)
READS_ONLY = "reads only"
EFFECT_STAYS = "declared idempotent: its effect stays"
CALL_FAILED = "the call failed"
ALREADY_UNDONE = "already undone"


class Kind(StrEnum):
    """What a plan does about a step."""

    COMPENSATE = "compensate"
    SKIP = "skip"
    UNRECOVERABLE = "unrecoverable"
    UNRESOLVED = "unresolved"
    UNMANIFESTED = "unmanifested"
    DEFER = "defer"


@dataclass(frozen=True, slots=True)
class Action:
    """What a plan does about one step; `pair` stands in the digest for arguments that must not be shown."""

    step: int
    tool: str
    kind: Kind
    reason: str | None = None
    summary: str = ""
    blocked_by: tuple[int, ...] = ()
    compensation_tool: str | None = None
    args: Mapping[str, Any] | None = None
    idempotency_key: str | None = None
    needs_approval: bool = False
    residue: tuple[str, ...] = ()
    compensation_kind: str | None = None
    verified: bool = False
    deadline: datetime | None = None
    role: Role | None = None
    pair: str | None = None
    is_open: bool = False

    @property
    def is_left_standing(self) -> bool:
        """Whether the effect of the step stays because its manifest calls it idempotent."""
        return self.kind is Kind.SKIP and self.reason == EFFECT_STAYS

    @property
    def is_fallback(self) -> bool:
        """Whether the step's own undo does not serve and its fallback stands in."""
        return self.role is Role.FALLBACK

    def to_json(self) -> dict[str, Any]:
        """Return the action as the interface shows it."""
        return {
            "step": self.step,
            "tool": self.tool,
            "kind": self.kind.value,
            "compensation_tool": self.compensation_tool,
            "args": None if self.args is None else dict(self.args),
            "idempotency_key": self.idempotency_key,
            "needs_approval": self.needs_approval,
            "residue": list(self.residue),
            "compensation_kind": self.compensation_kind,
            "verified": self.verified,
            "reason": self.reason,
            "blocked_by": list(self.blocked_by),
            "deadline": None if self.deadline is None else time_text(self.deadline),
            "fallback": self.is_fallback,
            "summary": self.summary,
        }
