"""A step as planning sees it: its record, the manifests it ran under, and what was already sent to undo it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ledger.core.statuses import StepState
from ledger.core.values import StepRecord
from reversi_sdk.model import Effect, Manifest, ManifestStatus
from reversi_sdk.references import Reference


class Role(StrEnum):
    """Which of a manifest's undos a call is."""

    PRIMARY = "primary"
    WHEN_ABSENT = "when_absent"
    FALLBACK = "fallback"


class AttemptOutcome(StrEnum):
    """What is known of one send; none of them while nobody recorded an answer."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    NOT_RUN = "not_run"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class AttemptFact:
    """One send of an undo, known from the moment it was committed, before anything was sent.

    `pair` is the keyed digest of undo tool and arguments. `is_keyed` tells that whoever ran it honours the key.
    `is_settled` tells that a person has since said what became of it.
    """

    pair: str
    generation: int
    key: str
    tool: str
    role: Role
    is_keyed: bool
    outcome: AttemptOutcome | None = None
    is_settled: bool = False


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step with everything its undo depends on.

    `follow_ups` are the manifests of the tools it names, `redacted` the paths whose values are never shown.
    `contradiction` says in what its events contradict its row, if they do: then nothing that the row says is believed.
    """

    record: StepRecord
    manifest: Manifest | None
    follow_ups: Mapping[str, Manifest] = field(default_factory=dict)
    attempts: tuple[AttemptFact, ...] = ()
    redacted: tuple[Reference, ...] = ()
    contradiction: str | None = None

    @property
    def number(self) -> int:
        """The step's number in its run."""
        return self.record.number

    @property
    def dependencies(self) -> tuple[int, ...]:
        """The earlier steps that this one was built on."""
        return (*self.record.depends_on, *self.record.requires_steps)

    @property
    def distrust(self) -> str | None:
        """Why nothing that a manifest says about the step may be believed, or None."""
        if self.manifest is None:
            is_lost = self.record.manifest_checksum is not None
            why = "its manifest document is missing or was altered" if is_lost else "no manifest"
            return f"{why}: what the call did is unknown"
        if self.manifest.status is ManifestStatus.DRAFT:
            return "ran under a draft manifest: what the call did is unknown"
        if self.record.is_contract_rejected:
            return "ran under a rejected effect contract: what the call did is unknown"
        return None

    @property
    def is_reading(self) -> bool:
        """Whether the step changed nothing, whatever became of it."""
        return self.distrust is None and self.manifest is not None and self.manifest.effect is Effect.READ_ONLY

    @property
    def is_undo_begun(self) -> bool:
        """Whether an undo is under way, or was when its executor died."""
        return self.contradiction is None and self.record.state is StepState.COMPENSATING

    @property
    def is_outcome_unknown(self) -> bool:
        """Whether nobody can say, or two parties contradict each other about, how the call ended."""
        return self.record.is_disputed or self.record.state in (StepState.INTENDED, StepState.UNCERTAIN)
