"""The undo handle: the only values of a call that outlive it (D14).

It holds the values that the undo maps name, keyed by the reference's canonical text, the rendered `touches` names,
and what the `before` read found. It is replaced as a whole at intent, completion and resolve; each such event
carries the keyed digest of the plaintext, and only a handle that matches the latest digest is believed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from reversi_sdk.references import MISSING, Found, Missing, Reference


class BeforeRead(StrEnum):
    """What the read before the call found (D35)."""

    NOT_MADE = "not_made"
    FOUND = "found"
    ABSENT = "absent"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Handle:
    """Named values by reference text, touched names (None: the whole upstream), and the state before and after.

    `after` is the keyed digest of the named values as the call left them, None when nobody read them.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    touches: tuple[str, ...] | None = None
    before: BeforeRead = BeforeRead.NOT_MADE
    after: str | None = None

    def find(self, reference: Reference) -> Found | Missing:
        """Return the stored value that the reference names."""
        if reference.key in self.values:
            return Found(self.values[reference.key])
        return MISSING

    def to_bytes(self) -> bytes:
        """Return the plaintext; equal handles give equal bytes."""
        members = {
            "values": dict(self.values),
            "touches": None if self.touches is None else list(self.touches),
            "before": self.before.value,
            "after": self.after,
        }
        return json.dumps(members, sort_keys=True, separators=(",", ":")).encode("ascii")

    @classmethod
    def from_bytes(cls, data: bytes) -> Handle:
        """Read a plaintext back; raises ValueError when it is not one."""
        members = json.loads(data)
        touches = members["touches"]
        return cls(
            values=members["values"],
            touches=None if touches is None else tuple(touches),
            before=BeforeRead(members["before"]),
            after=members["after"],
        )


@dataclass(frozen=True, slots=True)
class HandleLost:
    """Stands in the place of a handle that cannot be used, with the reason a person reads."""

    reason: str
