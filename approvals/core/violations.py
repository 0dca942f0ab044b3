"""Why a call may not pass, as values: a stable code and a sentence (D12)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Code(StrEnum):
    """What a call can violate, in the order in which violations are listed."""

    RUN_ROLLING_BACK = "run_rolling_back"
    HALTED = "halted"
    NO_MANIFEST = "no_manifest"
    DRAFT_MANIFEST = "draft_manifest"
    COMPENSATION_ONLY = "compensation_only"
    PERMISSION = "permission"
    REQUIRES = "requires"
    IDEMPOTENCY_KEY_UNAVAILABLE = "idempotency_key_unavailable"
    DUPLICATE = "duplicate"
    APPROVAL_DENIED = "approval_denied"
    BEFORE_FAILED = "before_failed"


# What stops a call even where violations are only recorded: the way back must not be built over, and a halt is a halt.
BLOCKING_ALWAYS = frozenset({Code.RUN_ROLLING_BACK, Code.HALTED})


@dataclass(frozen=True, slots=True)
class Violation:
    """One reason against a call."""

    code: Code
    message: str

    def to_json(self) -> dict[str, str]:
        """Return what is journaled and answered."""
        return {"code": self.code.value, "message": self.message}
