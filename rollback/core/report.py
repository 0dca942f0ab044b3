"""The report of a rollback, computed from the steps as they then stand (D23).

Nothing is taken over from what the executor believes it did: a step is where its record puts it. The executor adds
only why it sent nothing. `complete` is true only when no step is left in any of the seven buckets of trouble, and no
row of a step is gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from ledger.core.statuses import ReadBack, StepState
from reversi_sdk.model import Undo
from rollback.core.actions import Kind
from rollback.core.assessment import Assessment, assess_run
from rollback.core.dependencies import Blockers
from rollback.core.keys import KeyedDigest
from rollback.core.selection import Selected, Selection, select
from rollback.core.steps import PlanStep
from rollback.core.undo import undo_that_was_used

SETTLED_DURING = "settled during the rollback"
UNDER_WAY = "its undo was begun and not finished"


class Refusal(StrEnum):
    """Why an executor sent nothing for a step."""

    NOBODY_RUNS_IT = "nobody_runs_it"
    AWAITING_APPROVAL = "awaiting_approval"
    CHANGED_SINCE = "changed_since"
    IN_DOUBT = "in_doubt"
    PLANNED_OTHERWISE = "planned_otherwise"


@dataclass(frozen=True, slots=True)
class Refused:
    """A refusal before the send, and its words."""

    kind: Refusal
    error: str


class Bucket(StrEnum):
    """Where a report puts a step: exactly one place each."""

    COMPENSATED = "compensated"
    SKIPPED = "skipped"
    FAILED = "failed"
    UNRECOVERABLE = "unrecoverable"
    UNRESOLVED = "unresolved"
    UNMANIFESTED = "unmanifested"
    DEFERRED = "deferred"
    AWAITING_APPROVAL = "awaiting_approval"


PROBLEMS = (
    Bucket.FAILED,
    Bucket.UNRECOVERABLE,
    Bucket.UNRESOLVED,
    Bucket.UNMANIFESTED,
    Bucket.DEFERRED,
    Bucket.AWAITING_APPROVAL,
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One step in a report; `reason` is the error of a failed one."""

    step: int
    tool: str
    bucket: Bucket
    reason: str | None = None
    summary: str = ""
    blocked_by: tuple[int, ...] = ()
    residue: tuple[str, ...] = ()
    read_back: ReadBack | None = None
    is_by_hand: bool = False
    is_fallback: bool = False
    is_left_standing: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the step's line."""
        return {
            "step": self.step,
            "tool": self.tool,
            "outcome": self.bucket.value,
            "reason": self.reason,
            "summary": self.summary,
            "blocked_by": list(self.blocked_by),
            "residue": list(self.residue),
            "read_back": None if self.read_back is None else self.read_back.value,
            "by_hand": self.is_by_hand,
            "fallback": self.is_fallback,
            "left_standing": self.is_left_standing,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Entry:
        """Read a line back."""
        return cls(
            step=data["step"],
            tool=data["tool"],
            bucket=Bucket(data["outcome"]),
            reason=data["reason"],
            summary=data["summary"],
            blocked_by=tuple(data["blocked_by"]),
            residue=tuple(data["residue"]),
            read_back=None if data["read_back"] is None else ReadBack(data["read_back"]),
            is_by_hand=data["by_hand"],
            is_fallback=data["fallback"],
            is_left_standing=data["left_standing"],
        )


@dataclass(frozen=True, slots=True)
class Report:
    """How every step of the run, or of the selection, stands after a rollback; newest first.

    `rowless` are steps that the journal tells of and whose rows are gone: nothing can be said about them.
    """

    run_id: str
    entries: tuple[Entry, ...]
    selection: Selected | None = None
    rowless: tuple[int, ...] = ()

    def among(self, bucket: Bucket) -> tuple[Entry, ...]:
        """Return the bucket's entries, oldest first."""
        return tuple(sorted((e for e in self.entries if e.bucket is bucket), key=lambda e: e.step))

    @property
    def unverified(self) -> tuple[int, ...]:
        """The steps that are called undone while their declared read-back never ran."""
        return self._undone(lambda entry: entry.read_back is ReadBack.UNVERIFIED)

    @property
    def unchecked(self) -> tuple[int, ...]:
        """The undone steps that declare no read-back."""
        return self._undone(lambda entry: entry.read_back is ReadBack.NOT_DECLARED)

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to do, to decide or to check."""
        is_answered = not any(self.among(bucket) for bucket in PROBLEMS)
        return is_answered and not self.unverified and not self.rowless

    def _undone(self, is_meant: Any) -> tuple[int, ...]:
        return tuple(entry.step for entry in self.among(Bucket.COMPENSATED) if is_meant(entry))

    def _numbers(self, bucket: Bucket) -> list[int]:
        return [entry.step for entry in self.among(bucket)]

    def to_json(self) -> dict[str, Any]:
        """Return the report as the interface shows it."""
        failed, deferred = self.among(Bucket.FAILED), self.among(Bucket.DEFERRED)
        return {
            "run_id": self.run_id,
            "compensated": self._numbers(Bucket.COMPENSATED),
            "skipped": self._numbers(Bucket.SKIPPED),
            "failed": [{"step": entry.step, "error": entry.reason} for entry in failed],
            "unrecoverable": self._numbers(Bucket.UNRECOVERABLE),
            "unresolved": self._numbers(Bucket.UNRESOLVED),
            "unmanifested": self._numbers(Bucket.UNMANIFESTED),
            "deferred": [{"step": entry.step, "blocked_by": list(entry.blocked_by)} for entry in deferred],
            "awaiting_approval": self._numbers(Bucket.AWAITING_APPROVAL),
            "unverified": list(self.unverified),
            "rowless": list(self.rowless),
            "complete": self.is_complete,
            "by_hand": list(self._undone(lambda entry: entry.is_by_hand)),
            "unchecked": list(self.unchecked),
            "fallback": list(self._undone(lambda entry: entry.is_fallback)),
            "leaves_standing": sorted(entry.step for entry in self.entries if entry.is_left_standing),
            "residue": [
                {"step": entry.step, "residue": list(entry.residue)}
                for entry in self.among(Bucket.COMPENSATED)
                if entry.residue
            ],
            "selection": None if self.selection is None else self.selection.to_json(),
            "steps": [entry.to_json() for entry in self.entries],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Report:
        """Read a stored report back."""
        selection = data["selection"]
        return cls(
            run_id=data["run_id"],
            entries=tuple(Entry.from_json(entry) for entry in data["steps"]),
            selection=None if selection is None else Selected.from_json(selection),
            rowless=tuple(data["rowless"]),
        )


def build_report(
    run_id: str,
    steps: Sequence[PlanStep],
    *,
    keyed_digest: KeyedDigest,
    now: datetime,
    refused: Mapping[int, Refused],
    selection: Selection | None = None,
    taken: frozenset[int] = frozenset(),
    rowless: tuple[int, ...] = (),
) -> Report:
    """Report how the steps (given oldest first) stand.

    `refused` says for which of them nothing was sent, and why; `taken` are the steps that the rollback was planned
    for, which a report of a selection tells of besides whatever must by now go first.
    """
    assessed = assess_run(steps, keyed_digest=keyed_digest, now=now)
    selected = None
    if selection is not None:
        selected = select(steps, selection, {number: found.needs_undo for number, found in assessed.items()}, taken)
    wanted = None if selected is None else frozenset(selected.steps)
    blockers, entries = Blockers(), []
    for step in reversed(steps):
        found = assessed[step.number]
        if wanted is None or step.number in wanted:
            entries.append(_entry(step, found, refused.get(step.number), blockers.of(step)))
        if found.needs_undo:
            blockers.stands(step)
        else:
            blockers.passes(step)
    return Report(run_id, tuple(entries), selected, rowless)


def _entry(step: PlanStep, found: Assessment, refused: Refused | None, blocked_by: tuple[int, ...]) -> Entry:
    record = step.record
    bucket, reason = _place(step, found, refused, blocked_by)
    is_undone = bucket is Bucket.COMPENSATED
    is_ours = is_undone and not record.is_by_hand
    undo = undo_that_was_used(step) if is_ours else None
    return Entry(
        step=step.number,
        tool=record.tool,
        bucket=bucket,
        reason=reason,
        summary=record.summary,
        blocked_by=blocked_by if bucket is Bucket.DEFERRED else (),
        residue=() if undo is None else undo.residue,
        read_back=record.read_back if is_undone else None,
        is_by_hand=is_undone and record.is_by_hand,
        is_fallback=undo is not None and undo is _fallback(step),
        is_left_standing=bucket is Bucket.SKIPPED and found.is_effect_staying,
    )


def _fallback(step: PlanStep) -> Undo | None:
    undo = step.manifest.undo if step.manifest is not None else None
    return None if undo is None else undo.fallback


def _place(
    step: PlanStep, found: Assessment, refused: Refused | None, blocked_by: tuple[int, ...]
) -> tuple[Bucket, str | None]:
    state = step.record.state
    if step.contradiction is not None:
        return Bucket.UNRESOLVED, step.contradiction
    if found.kind is Kind.SKIP:
        is_undone = state is StepState.COMPENSATED and not step.is_reading
        return (Bucket.COMPENSATED if is_undone else Bucket.SKIPPED), found.reason
    if found.kind in (Kind.UNRECOVERABLE, Kind.UNMANIFESTED):
        return Bucket(found.kind.value), found.reason
    if refused is not None:
        is_waiting = refused.kind is Refusal.AWAITING_APPROVAL
        return (Bucket.AWAITING_APPROVAL if is_waiting else Bucket.FAILED), refused.error
    if state is StepState.COMPENSATING:
        return Bucket.UNRESOLVED, UNDER_WAY
    return _place_standing(step, found, blocked_by)


def _place_standing(step: PlanStep, found: Assessment, blocked_by: tuple[int, ...]) -> tuple[Bucket, str | None]:
    if blocked_by and found.kind is Kind.COMPENSATE:
        return Bucket.DEFERRED, None
    if step.record.state is StepState.COMPENSATION_FAILED:
        return Bucket.FAILED, step.record.error
    if found.kind is Kind.COMPENSATE:
        return Bucket.UNRESOLVED, SETTLED_DURING
    return Bucket.UNRESOLVED, found.reason
