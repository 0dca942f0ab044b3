"""The one internal model that both effect forms of a manifest normalise to (D2).

Built from the normal form by `reversi_sdk.manifests.manifest_from_normal`; durations are integer milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, assert_never

from reversi_sdk.references import MapValue, Reference


class Effect(StrEnum):
    """What a call of the tool does to the world."""

    READ_ONLY = "read_only"
    IDEMPOTENT = "idempotent"
    REVERSIBLE = "reversible"
    COMPENSABLE = "compensable"
    IRREVERSIBLE = "irreversible"

    @property
    def label(self) -> str:
        """The words for it wherever a person reads them (D2); an idempotent tool's effect stays."""
        match self:
            case Effect.READ_ONLY:
                return "read"
            case Effect.REVERSIBLE:
                return "write, can be undone"
            case Effect.COMPENSABLE:
                return "write, can be compensated (not undone)"
            case Effect.IDEMPOTENT | Effect.IRREVERSIBLE:
                return "write, cannot be undone"
            case _:
                assert_never(self)


class ManifestStatus(StrEnum):
    """Where a manifest stands in its life."""

    DRAFT = "draft"
    APPROVED = "approved"
    DEPRECATED = "deprecated"


class CompensationKind(StrEnum):
    """Restores the exact prior state, or makes amends."""

    INVERSE = "inverse"
    COMPENSATION = "compensation"


@dataclass(frozen=True, slots=True)
class Verification:
    """The declared read-back of an undo: `expect` maps a dotted path of the answer to its value (D37).

    `among` and `is_unordered` say how its answer is looked at (D108).
    """

    tool: str
    arguments: Mapping[str, MapValue]
    expect: Mapping[str, MapValue]
    retries: int
    backoff_ms: int
    among: Mapping[str, Reference] = field(default_factory=dict)
    is_unordered: bool = False


@dataclass(frozen=True, slots=True)
class Deadline:
    """Until when an undo works: `within_ms` from the answer, or the time found at `at` in the result (D5)."""

    within_ms: int | None
    at: Reference | None


@dataclass(frozen=True, slots=True)
class Undo:
    """One follow-up call that undoes a step: the primary, the fallback, or the one for an absent thing."""

    tool: str
    arguments: Mapping[str, MapValue]
    kind: CompensationKind
    residue: tuple[str, ...]
    requires_approval: bool
    timeout_ms: int | None
    verification: Verification | None
    deadline: Deadline | None
    self_inverse: bool
    repeatable: bool
    when_absent: Undo | None
    fallback: Undo | None


@dataclass(frozen=True, slots=True)
class AbsentWhen:
    """How the answer (or the error text) of a `before` read says that the thing does not exist (D35)."""

    path: tuple[str | int, ...] | None
    equals: Any
    error: str | None


@dataclass(frozen=True, slots=True)
class UnusableWhen:
    """Which text in the answer of a `before` read shows that nothing could be restored from it (D108)."""

    path: tuple[str | int, ...]
    glob: str


@dataclass(frozen=True, slots=True)
class Before:
    """The read made just before the call, whose named values read as `$before` (D35).

    `among` and `is_unordered` say how its answer is looked at (D108).
    """

    tool: str
    arguments: Mapping[str, MapValue]
    proceeds_on_missing: bool
    absent_when: AbsentWhen | None
    unusable_when: UnusableWhen | None = None
    among: Mapping[str, Reference] = field(default_factory=dict)
    is_unordered: bool = False


@dataclass(frozen=True, slots=True)
class Lookup:
    """A read that finds the effect when the answer was lost (D25)."""

    tool: str
    by: str
    arguments: Mapping[str, MapValue]
    result_map: Mapping[str, MapValue] | None
    settle_after_ms: int | None
    valid_for_ms: int | None


@dataclass(frozen=True, slots=True)
class DraftCall:
    """A call on a staged draft: promote it or discard it (D20)."""

    tool: str
    arguments: Mapping[str, MapValue]


@dataclass(frozen=True, slots=True)
class Draft:
    """The draft form of a tool (D20)."""

    tool: str
    arguments: Mapping[str, MapValue]
    handle: Reference
    promote: DraftCall
    discard: DraftCall | None


@dataclass(frozen=True, slots=True)
class Approval:
    """Who must agree before a call runs; `is_required` false with empty roles is `never`."""

    is_required: bool
    roles: tuple[str, ...]
    quorum: int
    timeout_ms: int | None
    on_timeout: str
    escalate_to: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Retry:
    """How often the gateway repeats a harmless call inside one step (D12)."""

    attempts: int
    base_ms: int
    max_ms: int


@dataclass(frozen=True, slots=True)
class Idempotency:
    """The template of the forward call's key, and how far it reaches: run, actor or global (D16)."""

    key: str
    scope: str


@dataclass(frozen=True, slots=True)
class KeyCarrier:
    """Where the tool takes its idempotency key: an argument, or the call's metadata (D41 b)."""

    argument: str | None
    is_meta: bool


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything Reversi knows about one tool."""

    tool: str
    effect: Effect
    permission: str
    description: str | None
    version: int
    status: ManifestStatus
    replaced_by: str | None
    owner: str | None
    oncall: str | None
    data_class: str | None
    blast_radius: str | None
    environment: str | None
    approval: Approval
    requires: tuple[str, ...]
    timeout_ms: int | None
    retry: Retry | None
    idempotency: Idempotency | None
    key_carrier: KeyCarrier | None
    undo: Undo | None
    before: Before | None
    lookup: Lookup | None
    draft: Draft | None
    touches: tuple[str, ...] | None
    summary: str | None
    observed_by_gateway: bool
    is_compensation_only: bool
    redaction: tuple[Reference, ...]
    retention_days: int | None
    evidence_export: str | None
    schema_hash: str | None

    @property
    def is_changing(self) -> bool:
        """Whether a successful call may leave something different behind."""
        return self.effect is not Effect.READ_ONLY

    @property
    def needs_undo(self) -> bool:
        """Whether rollback owes this tool's effect an answer: an undo, or the admission that there is none."""
        return self.effect not in (Effect.READ_ONLY, Effect.IDEMPOTENT)
