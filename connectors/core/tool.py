"""One row of a connector's table: everything there is to know about a tool, and the function that runs it.

Manifests, input schemas, documentation tables and schema hashes are derived from the rows and from nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from connectors.core.fields import Field
from reversi_sdk.model import CompensationKind, Effect


@dataclass(frozen=True, slots=True)
class CallContext:
    """What comes with a call besides its arguments."""

    idempotency_key: str | None = None
    is_overwrite_allowed: bool = False
    timeout_ms: int | None = None


# The first argument is the connector's own state (its root, its session); only its tools know its type.
Run = Callable[[Any, Mapping[str, Any], CallContext], Any]


@dataclass(frozen=True, slots=True)
class VerificationRow:
    """The read-back of an undo: which read, with which arguments, must answer what (values as in D37)."""

    tool: str
    arguments: Mapping[str, Any]
    expect: Mapping[str, Any]
    retries: int = 1
    backoff_ms: int = 0


@dataclass(frozen=True, slots=True)
class UndoRow:
    """How a tool is undone: the tool that does it, its argument map, what stays, and the read-back."""

    tool: str
    argument_map: Mapping[str, Any]
    residue: tuple[str, ...] = ()
    verification: VerificationRow | None = None
    requires_approval: bool = False
    timeout_ms: int | None = None

    @property
    def kind(self) -> CompensationKind:
        """Say `inverse` only of an undo that leaves nothing behind: an inverse may not list residue."""
        return CompensationKind.COMPENSATION if self.residue else CompensationKind.INVERSE


@dataclass(frozen=True, slots=True)
class KeyCarrierRow:
    """Where the tool takes its idempotency key: an argument by name, or the call's metadata (D41 b)."""

    argument: str | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of a connector.

    `already_done` says, in words or in the vendor's codes, which answers mean that the goal was met before the call.
    """

    name: str
    effect: Effect
    permission: str
    description: str
    inputs: Mapping[str, Field]
    run: Run
    summary: str
    undo: UndoRow | None = None
    touches: tuple[str, ...] = ()
    is_compensation_only: bool = False
    key_carrier: KeyCarrierRow | None = None
    already_done: tuple[str, ...] = ()
    timeout_ms: int | None = None

    @property
    def is_reading(self) -> bool:
        """Whether the tool changes nothing."""
        return self.effect is Effect.READ_ONLY
