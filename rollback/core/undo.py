"""Choose how a step is undone: the primary, the undo for a thing that was absent, or the fallback (D2, D5, D35).

While the outcome of an undo that was sent is unknown, nothing but that same undo may be chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from ledger.core.handles import BeforeRead, Handle
from reversi_sdk.model import Deadline, Manifest, Undo
from reversi_sdk.references import Arguments, Found, Unavailable, resolve
from rollback.core.doubt import Doubt, Doubtful
from rollback.core.keys import KeyedDigest, compensation_key, generation_of, pair_digest
from rollback.core.redaction import redacting
from rollback.core.steps import AttemptOutcome, PlanStep, Role

_WITHOUT_EFFECT = (AttemptOutcome.FAILED, AttemptOutcome.NOT_RUN)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The undo call of a step; `shown` are its arguments as a person may see them."""

    undo: Undo
    role: Role
    arguments: Mapping[str, Any]
    shown: Mapping[str, Any]
    deadline: datetime | None
    pair: str
    generation: int
    key: str


@dataclass(frozen=True, slots=True)
class Withheld:
    """There is no undo to send, and why."""

    reason: str


def choose_undo(step: PlanStep, *, doubt: Doubtful, keyed_digest: KeyedDigest, now: datetime) -> Chosen | Withheld:
    """Return the undo that serves now, or the first reason why none does."""
    record, manifest = step.record, step.manifest
    if not isinstance(record.handle, Handle):
        return Withheld(record.handle.reason)
    if record.unrecoverable is not None:
        return Withheld(record.unrecoverable)
    if manifest is None or manifest.undo is None:
        return Withheld("declared irreversible: it cannot be undone")
    maker = _Maker(step, manifest, record.handle, keyed_digest)
    built = [maker.build(role, undo) for role, undo in _candidates(manifest.undo, record.handle)]
    return _serving(built, now) if doubt.kind is Doubt.NONE else _same(built, doubt)


def build_undos(step: PlanStep, *, keyed_digest: KeyedDigest) -> Mapping[Role, Chosen | Withheld]:
    """Return every undo that the manifest declares for the step as it stands, whether its window is open or not."""
    manifest, handle = step.manifest, step.record.handle
    if manifest is None or manifest.undo is None or not isinstance(handle, Handle):
        return {}
    maker = _Maker(step, manifest, handle, keyed_digest)
    return {role: maker.build(role, undo) for role, undo in _candidates(manifest.undo, handle)}


def _same(built: Sequence[Chosen | Withheld], doubt: Doubtful) -> Chosen | Withheld:
    sent = (undo for undo in built if isinstance(undo, Chosen) and undo.pair == doubt.pair)
    return next(sent, Withheld("it can no longer be built as it was sent"))


def _serving(built: Sequence[Chosen | Withheld], now: datetime) -> Chosen | Withheld:
    reasons = []
    for undo in built:
        closed = _why_closed(undo, now) if isinstance(undo, Chosen) else undo.reason
        if closed is None:
            return undo
        reasons.append(closed)
    return Withheld(reasons[0])


def _candidates(undo: Undo, handle: Handle) -> Iterator[tuple[Role, Undo]]:
    if handle.before is BeforeRead.ABSENT and undo.when_absent is not None:
        yield Role.WHEN_ABSENT, undo.when_absent
    else:
        yield Role.PRIMARY, undo
    if undo.fallback is not None:
        yield Role.FALLBACK, undo.fallback


@dataclass(frozen=True, slots=True)
class _Maker:
    """Builds the undo calls of one step."""

    step: PlanStep
    manifest: Manifest
    handle: Handle
    keyed_digest: KeyedDigest

    def build(self, role: Role, undo: Undo) -> Chosen | Withheld:
        arguments = resolve(undo.arguments, self.handle.find)
        if isinstance(arguments, Unavailable):
            return Withheld(f"the undo cannot be built: {arguments.reason}")
        shown = resolve(undo.arguments, redacting(self.handle.find, self.step.redacted))
        record = self.step.record
        pair = pair_digest(undo.tool, arguments.values, self.keyed_digest)
        generation = generation_of(pair, self.step.attempts)
        return Chosen(
            undo=undo,
            role=role,
            arguments=arguments.values,
            shown=shown.values if isinstance(shown, Arguments) else {},
            deadline=_closing_time(undo.deadline, record.settled_at, self.handle),
            pair=pair,
            generation=generation,
            key=compensation_key(run_id=record.run_id, step=record.number, tool=record.tool, generation=generation),
        )


def _why_closed(chosen: Chosen, now: datetime) -> str | None:
    deadline, closes_at = chosen.undo.deadline, chosen.deadline
    if deadline is None:
        return None
    if closes_at is None:
        source = deadline.at.text if deadline.at is not None else "the time of the answer"
        return f"the undo window is unknown: {source} names no time"
    return f"undo window closed at {time_text(closes_at)}" if now > closes_at else None


def _closing_time(deadline: Deadline | None, settled_at: datetime | None, handle: Handle) -> datetime | None:
    if deadline is not None and deadline.at is not None:
        found = handle.find(deadline.at)
        return parse_time(found.value) if isinstance(found, Found) else None
    if deadline is None or deadline.within_ms is None or settled_at is None:
        return None
    return settled_at + timedelta(milliseconds=deadline.within_ms)


def parse_time(value: object) -> datetime | None:
    """Read an ISO-8601 time with its zone, or epoch milliseconds; None when the value names no time."""
    try:
        match value:
            case bool():
                return None
            case int() | float():
                return datetime.fromtimestamp(value / 1000, UTC)
            case str():
                at = datetime.fromisoformat(value)
                return None if at.tzinfo is None else at.astimezone(UTC)
            case _:
                return None
    except (ValueError, OverflowError, OSError):
        return None


def time_text(at: datetime) -> str:
    """Write a time in UTC, with milliseconds only where there are any."""
    shown = at.astimezone(UTC)
    precision = "milliseconds" if shown.microsecond else "seconds"
    return shown.isoformat(timespec=precision).replace("+00:00", "Z")


def undo_that_was_used(step: PlanStep) -> Undo | None:
    """Return which of the manifest's undos an undone step was undone by; by hand: the one that would have served."""
    manifest, handle = step.manifest, step.record.handle
    if manifest is None or manifest.undo is None or step.distrust is not None:
        return None
    # A lost answer that a read-back vouched for later was the one that worked.
    worked = (a.role for a in reversed(step.attempts) if a.outcome not in _WITHOUT_EFFECT and not a.is_settled)
    role = None if step.record.is_by_hand else next(worked, None)
    if role is None:
        is_absent = isinstance(handle, Handle) and handle.before is BeforeRead.ABSENT
        role = Role.WHEN_ABSENT if is_absent and manifest.undo.when_absent is not None else Role.PRIMARY
    undo = manifest.undo
    return {Role.PRIMARY: undo, Role.WHEN_ABSENT: undo.when_absent, Role.FALLBACK: undo.fallback}[role]
