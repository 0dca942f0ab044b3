"""How a rollback is to be done, as the operator asked and as the job keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rollback.core.backoff import Retrying
from rollback.core.selection import Selection


@dataclass(frozen=True, slots=True)
class RollbackOptions:
    """What an operator decides; with a `digest` only the plan that was looked at is executed."""

    retrying: Retrying = field(default_factory=Retrying)
    selection: Selection | None = None
    approves_compensations: bool = False
    is_overwrite_allowed: bool = False
    closes: bool = False
    digest: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the options as a job keeps them."""
        return {
            "attempts": self.retrying.attempts,
            "base_ms": self.retrying.base_ms,
            "max_ms": self.retrying.max_ms,
            "selection": None if self.selection is None else self.selection.to_json(),
            "approves_compensations": self.approves_compensations,
            "overwrite": self.is_overwrite_allowed,
            "close": self.closes,
            "digest": self.digest,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RollbackOptions:
        """Read the options back."""
        return cls(
            retrying=Retrying(data["attempts"], data["base_ms"], data["max_ms"]),
            selection=Selection.from_json(data["selection"]),
            approves_compensations=data["approves_compensations"],
            is_overwrite_allowed=data["overwrite"],
            closes=data["close"],
            digest=data["digest"],
        )
