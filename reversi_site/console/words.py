"""The words and colours of everything a page shows: one table of tones, one registry of what events say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from approvals.core.halts import HaltScope
from ledger.core.statuses import ReadBack, SettledBy, StepState
from ledger.core.values import EventRecord, StepRecord
from ledger.overview import DISPUTED, UNVERIFIED
from reversi_sdk.model import Effect
from rollback.core.actions import Kind
from rollback.core.report import Bucket

# Every status that a page can show, whatever it is a status of, has its colour here and nowhere else.
TONES: Mapping[str, str] = {
    # steps
    "intended": "busy",
    "succeeded": "good",
    "failed": "bad",
    "uncertain": "doubt",
    "compensating": "busy",
    "compensated": "undone",
    "compensation_failed": "bad",
    "blocked": "bad",
    "disputed": "doubt",
    # read-backs
    "verified": "good",
    "unverified": "warn",
    "not_declared": "quiet",
    # runs
    "open": "good",
    "closed": "quiet",
    "rolling_back": "busy",
    "enforce": "plain",
    "observe": "warn",
    # plans
    "compensate": "good",
    "skip": "quiet",
    "unrecoverable": "bad",
    "unresolved": "doubt",
    "unmanifested": "bad",
    "defer": "warn",
    # reports
    "skipped": "quiet",
    "deferred": "warn",
    "awaiting_approval": "warn",
    # jobs
    "queued": "busy",
    "running": "busy",
    "done": "good",
    # requests for approval, votes, halts and keys
    "pending": "warn",
    "approved": "good",
    "approve": "good",
    "denied": "bad",
    "deny": "bad",
    "expired": "quiet",
    "cancelled": "quiet",
    "used": "quiet",
    "standing": "bad",
    "lifted": "quiet",
    "usable": "good",
    "revoked": "bad",
    # people
    "active": "good",
    "switched_off": "quiet",
}
KIND_WORDS: Mapping[Kind, str] = {
    Kind.COMPENSATE: "will be undone",
    Kind.SKIP: "needs no undo",
    Kind.UNRECOVERABLE: "cannot be undone",
    Kind.UNRESOLVED: "must be settled first",
    Kind.UNMANIFESTED: "effect unknown",
    Kind.DEFER: "blocked by later steps",
}
BUCKET_WORDS: Mapping[Bucket, str] = {
    Bucket.COMPENSATED: "undone",
    Bucket.SKIPPED: "nothing to undo",
    Bucket.FAILED: "not undone",
    Bucket.UNRECOVERABLE: "cannot be undone",
    Bucket.UNRESOLVED: "unresolved",
    Bucket.UNMANIFESTED: "no manifest",
    Bucket.DEFERRED: "blocked by later steps",
    Bucket.AWAITING_APPROVAL: "awaiting approval",
}
READ_BACK_WORDS: Mapping[ReadBack, str] = {
    ReadBack.VERIFIED: "read back and confirmed",
    ReadBack.UNVERIFIED: "not read back yet",
    ReadBack.NOT_DECLARED: "no read-back declared",
}
LONG_STRETCH = 3
QUESTION_WORDS: Mapping[str, str] = {
    StepState.INTENDED: "in flight",
    StepState.UNCERTAIN: "uncertain",
    StepState.COMPENSATING: "being undone",
    StepState.COMPENSATION_FAILED: "not undone",
    DISPUTED: "disputed",
    UNVERIFIED: "not read back",
}
EVENT_TEXTS: Mapping[str, str] = {
    "opened": "Run opened",
    "closed": "Run closed: it takes no more calls",
    "blocked": "Call blocked",
    "intended": "Call announced",
    "succeeded": "Call succeeded",
    "failed": "Call failed",
    "uncertain": "Outcome lost",
    "late": "The outcome came late",
    "disputed": "A report contradicted what was settled",
    "resolved_succeeded": "Settled by a person: it happened",
    "resolved_failed": "Settled by a person: it did not happen",
    "resolved_compensated": "Settled by a person: it happened, and is undone",
    "rollback_queued": "A rollback was queued: new calls are blocked",
    "overwriting": "Newer work is run over: an operator allowed it",
    "rollback_started": "Work on the run began: new calls are blocked",
    "rollback_finished": "Work on the run ended",
    "compensating": "Undo announced",
    "undo_answered": "The undo answered",
    "undo_refused": "Nothing was sent to undo it",
    "compensated": "Undone",
    "compensation_failed": "Not undone",
    "verified": "Read back: the undo is seen",
    "verification_failed": "Read back: the undo is not seen",
    "unverified": "Undone, but nothing could read it back",
    "read_back_failed": "The read-back could not be made",
    "by_hand": "Undone by hand, says a person",
    "halt_added": "Halt added",
    "halt_lifted": "Halt lifted",
    "approval_requested": "Approval requested",
    "approval_used": "Approval used up",
    "approval_voted": "Vote on a request",
    "approval_ended": "Request for approval ended",
    "roles_set_up": "Roles set up",
    "roles_granted": "Roles granted",
    "roles_revoked": "Roles revoked",
    "user_created": "Person added",
    "password_set": "Password set",
    "first_admin_made": "First administrator made",
    "key_created": "API key made",
    "key_revoked": "API key revoked",
}


def step_numbers(steps: Iterable[int]) -> str:
    """Return step numbers as people list them: in order, and longer stretches by their ends."""
    stretches: list[list[int]] = []
    for step in sorted(steps):
        if stretches and step == stretches[-1][-1] + 1:
            stretches[-1].append(step)
        else:
            stretches.append([step])
    return ", ".join(text for stretch in stretches for text in _stretch(stretch))


def _stretch(steps: Sequence[int]) -> Sequence[str]:
    return [f"{steps[0]} to {steps[-1]}"] if len(steps) >= LONG_STRETCH else [str(step) for step in steps]


def residue_of(steps: Iterable[tuple[int, Sequence[str]]]) -> list[tuple[str, list[int]]]:
    """Return what stays behind with the steps that leave it: said once, however many do."""
    found: dict[str, list[int]] = defaultdict(list)
    for step, texts in steps:
        for text in texts:
            found[text].append(step)
    return list(found.items())


def words(value: object) -> str:
    """Return a stored word as people read it."""
    return str(value).replace("_", " ")


def event_text(kind: str) -> str:
    """Return what an event says; one that the registry lacks is told by its kind."""
    return EVENT_TEXTS.get(kind) or words(kind).capitalize()


def effect_label(effect: str | None) -> str:
    """Return the words for a tool's effect; without a manifest nobody knows it."""
    return "effect unknown" if effect is None else Effect(effect).label


def step_marks(step: StepRecord) -> list[tuple[str, str]]:
    """Return what a person must know about a step beyond its state, each with its tone."""
    found = [
        ("bad" if step.state is not StepState.UNCERTAIN else "warn", step.error),
        ("bad", step.unrecoverable and f"cannot be undone: {step.unrecoverable}"),
        ("bad", step.is_disputed and "its outcome is disputed: resolve it again"),
        ("bad", step.is_undo_outcome_unknown and "nobody knows whether its undo happened"),
        ("bad", step.is_contract_rejected and "ran under a manifest that was not approved"),
        ("quiet", step.settled_by is SettledBy.PERSON and "settled by a person"),
        ("quiet", step.is_by_hand and "undone by hand"),
    ]
    if step.state is StepState.COMPENSATED:
        tone = {ReadBack.VERIFIED: "good", ReadBack.UNVERIFIED: "warn", ReadBack.NOT_DECLARED: "quiet"}
        found.append((tone[step.read_back], READ_BACK_WORDS[step.read_back]))
    return [(tone, text) for tone, text in found if text]


def scope_words(scope: HaltScope) -> str:
    """Return what a halt stops."""
    named = scope.to_json()
    return ", ".join(f"{field} {glob}" for field, glob in named.items()) if named else "everything"


def ago(at: datetime, now: datetime) -> str:
    """Return how long ago something was, or how soon it will be, roughly."""
    seconds = (now - at).total_seconds()
    size = duration(timedelta(seconds=abs(seconds)))
    if abs(seconds) < 1:
        return "now"
    return f"{size} ago" if seconds > 0 else f"in {size}"


def duration(span: timedelta) -> str:
    """Return a length of time in its largest unit."""
    seconds = int(span.total_seconds())
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size or (unit != "min" and seconds >= size * 1.5) or (unit == "min" and seconds >= 60):
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def event_details(event: EventRecord) -> list[tuple[str, Any]]:
    """Return the fields of an event's data that say something, as they were written."""
    return [(words(name), value) for name, value in (event.data or {}).items() if value not in (None, "", [], {})]
