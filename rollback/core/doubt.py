"""What may be done about an undo whose outcome is in doubt (D23).

In doubt is what was sent and not answered (`lost`), what was answered and not yet recorded (`answered`), and what
was answered and then not seen by its read-back (`unseen`). Sending such an undo again could undo twice, so it is
repeated only where a repeat is harmless; else the world is read first; else nothing is sent until a person decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ledger.core.statuses import StepState
from reversi_sdk.model import Effect, Manifest, Undo
from rollback.core.steps import AttemptFact, AttemptOutcome, PlanStep

_MOST_SENDS_AFTER_A_LOOK = 2


class Doubt(StrEnum):
    """What is unclear about the sends so far."""

    NONE = "none"
    LOST = "lost"
    ANSWERED = "answered"
    UNSEEN = "unseen"


class Course(StrEnum):
    """What to do next about a step's undo."""

    SEND = "send"
    CHECK = "check"
    READ_FIRST = "read_first"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Doubtful:
    """The doubt, the pair it is about, and how often that may have happened."""

    kind: Doubt
    pair: str | None = None
    sends: int = 0
    was_keyed: bool = True


CLEAR = Doubtful(Doubt.NONE)


def doubt_about(state: StepState, is_marked_unknown: bool, attempts: Sequence[AttemptFact]) -> Doubtful:
    """Return what is unclear about a step in `state` after these sends."""
    open_ones = [attempt for attempt in attempts if not attempt.is_settled]
    if state is StepState.SUCCEEDED:
        return CLEAR
    if not open_ones:
        # Somebody marked or began an undo of which no send is known: nothing may be assumed about it.
        is_begun = state is StepState.COMPENSATING or is_marked_unknown
        return Doubtful(Doubt.LOST, was_keyed=False) if is_begun else CLEAR
    tail = _doubtful_tail(open_ones)
    if not tail:
        return CLEAR
    kind = _kind(state, tail)
    return Doubtful(kind, tail[0].pair, len(tail), all(attempt.is_keyed for attempt in tail))


def _doubtful_tail(attempts: Sequence[AttemptFact]) -> Sequence[AttemptFact]:
    """Return the sends from the first doubtful one on.

    A definite failure ends the doubt about unanswered sends before it only where the key was honoured: there it is the
    answer to all of them. Elsewhere the repeat may have failed because the first one had worked. What was answered as
    done stays in doubt whatever fails later: "already done" is a failure too. A send that never reached the tool
    changes nothing about the others.
    """
    tail: list[AttemptFact] = []
    for attempt in (sent for sent in attempts if sent.outcome is not AttemptOutcome.NOT_RUN):
        is_failure = attempt.outcome is AttemptOutcome.FAILED
        if is_failure and attempt.is_keyed:
            tail = [sent for sent in tail if sent.outcome is AttemptOutcome.SUCCEEDED]
        elif tail or not is_failure:
            tail.append(attempt)
    return tail


def _kind(state: StepState, tail: Sequence[AttemptFact]) -> Doubt:
    if tail[-1].outcome is not AttemptOutcome.SUCCEEDED:
        return Doubt.LOST
    return Doubt.ANSWERED if state is StepState.COMPENSATING else Doubt.UNSEEN


def doubt_of(step: PlanStep) -> Doubtful:
    """Return what is unclear about the step's undo."""
    return doubt_about(step.record.state, step.record.is_undo_outcome_unknown, step.attempts)


def is_harmless_to_repeat(undo: Undo, tool: Manifest | None, *, is_keyed: bool) -> bool:
    """Whether sending the undo once more with the same key cannot do it twice.

    `is_keyed` says that every send so far, and the next, reach something that honours the key.
    """
    if undo.self_inverse:
        return undo.repeatable
    return is_keyed or (tool is not None and tool.effect is Effect.IDEMPOTENT)


def course_of(doubt: Doubtful, *, is_repeatable: bool, can_read: bool) -> Course:
    """Return what the rule allows next."""
    match doubt.kind:
        case Doubt.NONE:
            return Course.SEND
        case Doubt.ANSWERED:
            return Course.CHECK
        case Doubt.UNSEEN if can_read:
            return Course.READ_FIRST
        case _ if is_repeatable:
            return Course.SEND
        case _:
            return Course.READ_FIRST if can_read else Course.STOP


def may_send_after_mismatch(doubt: Doubtful, *, is_repeatable: bool) -> bool:
    """Whether an undo that the read-back does not see may be sent again: once, unless a repeat is harmless."""
    return is_repeatable or doubt.sends < _MOST_SENDS_AFTER_A_LOOK
