"""What each step calls for by itself, before anything is said about the others (D22)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ledger.core.statuses import ReadBack, StepState
from reversi_sdk.model import Effect
from rollback.core.actions import (
    ALREADY_UNDONE,
    CALL_FAILED,
    DISPUTED,
    EFFECT_STAYS,
    IN_DOUBT,
    OVERTAKEN,
    READS_ONLY,
    RECONCILE,
    Kind,
)
from rollback.core.doubt import CLEAR, Course, Doubt, Doubtful, course_of, doubt_of, is_harmless_to_repeat
from rollback.core.keys import KeyedDigest
from rollback.core.overtaken import UndoneSoFar
from rollback.core.steps import PlanStep
from rollback.core.undo import Chosen, Withheld, choose_undo


@dataclass(frozen=True, slots=True)
class Assessment:
    """A step's kind if nothing blocks it, why, and the undo when there is one."""

    kind: Kind
    reason: str | None = None
    chosen: Chosen | None = None
    doubt: Doubtful = CLEAR

    @property
    def needs_undo(self) -> bool:
        """Whether the step's effect is, or may be, in the world and rollback owes it an answer."""
        return self.kind is not Kind.SKIP

    @property
    def is_effect_staying(self) -> bool:
        """Whether the effect stays because the tool is declared idempotent."""
        return self.kind is Kind.SKIP and self.reason == EFFECT_STAYS


def assess_run(steps: Sequence[PlanStep], *, keyed_digest: KeyedDigest, now: datetime) -> dict[int, Assessment]:
    """Return what each step (given oldest first) calls for, by number.

    A step that an earlier one's undo has overtaken is for a person: its undo would bring that one's effect back.
    """
    assessed: dict[int, Assessment] = {}
    undone = UndoneSoFar()
    for step in steps:
        found = assess(step, keyed_digest=keyed_digest, now=now)
        is_late = found.kind is Kind.COMPENSATE and undone.have_overtaken(step)
        assessed[step.number] = _overtaken(found) if is_late else found
        undone.note(step, is_confirmed=step.record.read_back is ReadBack.VERIFIED)
    return assessed


def _overtaken(found: Assessment) -> Assessment:
    if found.doubt.kind is Doubt.NONE:
        return Assessment(Kind.UNRECOVERABLE, OVERTAKEN)
    return Assessment(Kind.UNRESOLVED, f"{IN_DOUBT}; {OVERTAKEN}", doubt=found.doubt)


def assess(step: PlanStep, *, keyed_digest: KeyedDigest, now: datetime) -> Assessment:
    """Return what the step calls for; a read is skipped whatever became of it."""
    record = step.record
    if step.contradiction is not None:
        return Assessment(Kind.UNRESOLVED, step.contradiction)
    if step.is_reading:
        return Assessment(Kind.SKIP, READS_ONLY)
    if step.is_outcome_unknown:
        return Assessment(Kind.UNRESOLVED, DISPUTED if record.is_disputed else RECONCILE)
    if record.state is StepState.FAILED:
        return Assessment(Kind.SKIP, CALL_FAILED)
    if record.state is StepState.COMPENSATED:
        return Assessment(Kind.SKIP, _undone(step))
    if step.distrust is not None:
        return Assessment(Kind.UNMANIFESTED, step.distrust)
    if step.manifest is not None and step.manifest.effect is Effect.IDEMPOTENT:
        return Assessment(Kind.SKIP, EFFECT_STAYS)
    return _assess_standing(step, keyed_digest, now)


def _undone(step: PlanStep) -> str:
    by_hand = f"{ALREADY_UNDONE} by hand" if step.record.is_by_hand else ALREADY_UNDONE
    return f"{by_hand}, not read back yet" if step.record.read_back is ReadBack.UNVERIFIED else by_hand


def _assess_standing(step: PlanStep, keyed_digest: KeyedDigest, now: datetime) -> Assessment:
    doubt = doubt_of(step)
    chosen = choose_undo(step, doubt=doubt, keyed_digest=keyed_digest, now=now)
    if isinstance(chosen, Withheld):
        if doubt.kind is Doubt.NONE:
            return Assessment(Kind.UNRECOVERABLE, chosen.reason)
        return Assessment(Kind.UNRESOLVED, f"{IN_DOUBT}; {chosen.reason}", doubt=doubt)
    # Who will execute is not known here: what was honoured at the last send is what a plan may count on.
    can_repeat = is_repeatable(step, chosen, doubt, is_keyed=True)
    course = course_of(doubt, is_repeatable=can_repeat, can_read=chosen.undo.verification is not None)
    if course is Course.STOP:
        return Assessment(Kind.UNRESOLVED, IN_DOUBT, doubt=doubt)
    return Assessment(Kind.COMPENSATE, None, chosen, doubt)


def is_repeatable(step: PlanStep, chosen: Chosen, doubt: Doubtful, *, is_keyed: bool) -> bool:
    """Whether the chosen undo may be sent again; `is_keyed` says whether the next send honours the key."""
    tool = step.follow_ups.get(chosen.undo.tool)
    return is_harmless_to_repeat(chosen.undo, tool, is_keyed=is_keyed and doubt.was_keyed)
