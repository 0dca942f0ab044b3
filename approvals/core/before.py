"""The state that stood before a call: what a read of it showed, and whether that is enough to undo by (D35).

The same reading of an answer serves three moments: the capture before the call, the after-value when the call has
succeeded, and the executor's look before it overwrites something (D23). `after_digest` gives equal digests for equal
states, so the last two can be compared without keeping the values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from approvals.core.follow_ups import references_to, required_references
from approvals.core.results import as_json, is_storable
from ledger.core.handles import BeforeRead, Handle
from reversi_sdk.canonical import lenient_bytes
from reversi_sdk.model import AbsentWhen, Before, Manifest
from reversi_sdk.references import (
    MISSING,
    Arguments,
    Found,
    Missing,
    Reference,
    Root,
    Spelling,
    Unavailable,
    follow,
    look_up,
    resolve,
)

PREFIX = "cannot capture the state before"


@dataclass(frozen=True, slots=True)
class BeforeAnswer:
    """What the read answered: a value, nothing there (`is_found` false), or an error's text."""

    is_found: bool = True
    value: Any = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Captured:
    """The state before as far as it is known; `failure` is why it is not, when the manifest needs it."""

    read: BeforeRead = BeforeRead.NOT_MADE
    value: Any = MISSING
    failure: str | None = None

    @property
    def roots(self) -> Mapping[Root, Any]:
        """What `$before` references read."""
        return {} if isinstance(self.value, Missing) else {Root.BEFORE: self.value}


NOT_DECLARED = Captured()


def read_arguments(before: Before, args: Mapping[str, Any]) -> Arguments | Unavailable:
    """Fill the arguments of the read from those of the call."""
    return resolve(before.arguments, lambda reference: look_up(reference, {Root.ARGS: args}))


def capture(manifest: Manifest, answer: BeforeAnswer) -> Captured:
    """Judge the answer of the read made before a call."""
    before = manifest.before
    if before is None:
        return NOT_DECLARED
    state = _read(before, answer)
    if isinstance(state, str):
        return Captured(BeforeRead.MISSING, failure=f"{PREFIX}: {state}")
    gap = _gap(manifest, state)
    return state if gap is None else Captured(BeforeRead.MISSING, failure=f"{PREFIX}: {gap}")


def unread(reason: str) -> Captured:
    """Return what is known when the read could not even be made."""
    return Captured(BeforeRead.MISSING, failure=f"{PREFIX}: {reason}")


def _read(before: Before, answer: BeforeAnswer) -> Captured | str:
    rule = before.absent_when
    if answer.error is not None:
        is_absent = rule is not None and rule.error is not None and fnmatchcase(answer.error, rule.error)
        return Captured(BeforeRead.ABSENT) if is_absent else answer.error
    if not answer.is_found or (rule is not None and _says_absent(rule, answer.value)):
        return Captured(BeforeRead.ABSENT)
    return Captured(BeforeRead.FOUND, as_json(answer.value))


def _says_absent(rule: AbsentWhen, value: Any) -> bool:
    if rule.path is None:
        return False
    found = follow(as_json(value), rule.path)
    return isinstance(found, Found) and lenient_bytes(found.value) == lenient_bytes(rule.equals)


def _gap(manifest: Manifest, state: Captured) -> str | None:
    for reference in required_references(manifest, state.read):
        if reference.root is Root.BEFORE and not _serves(reference, look_up(reference, state.roots)):
            return f"{reference.text} names nothing"
    return None


def _serves(reference: Reference, found: Found | Missing) -> bool:
    if not isinstance(found, Found) or not is_storable(found.value):
        return False
    # In the contract spelling a null names nothing (D3).
    return found.value is not None or reference.spelling is Spelling.FLAT


def after_digest(keyed_digest: Callable[[bytes], str], manifest: Manifest, answer: BeforeAnswer) -> str | None:
    """Return the digest of the state an answer shows, or None when the read failed: the state is unknown.

    `keyed_digest` is the run's (HMAC under its salt). Only the values that the manifest's maps name count.
    """
    if manifest.before is None:
        return None
    state = _read(manifest.before, answer)
    if isinstance(state, str):
        return None
    return _digest(keyed_digest, state.read, dict(_named(manifest, state)))


def before_digest(keyed_digest: Callable[[bytes], str], manifest: Manifest, handle: Handle) -> str | None:
    """Return the digest of the state that stood before the call, to compare with `after_digest`; None when unknown."""
    if handle.before not in (BeforeRead.FOUND, BeforeRead.ABSENT):
        return None
    keys = {reference.key for reference in references_to(manifest, Root.BEFORE)}
    return _digest(keyed_digest, handle.before, {key: handle.values[key] for key in keys & handle.values.keys()})


def _digest(keyed_digest: Callable[[bytes], str], read: BeforeRead, values: Mapping[str, Any]) -> str:
    return keyed_digest(lenient_bytes({"found": read is BeforeRead.FOUND, "values": dict(values)}))


def _named(manifest: Manifest, state: Captured) -> Iterator[tuple[str, Any]]:
    for reference in references_to(manifest, Root.BEFORE):
        found = look_up(reference, state.roots)
        if isinstance(found, Found) and is_storable(found.value):
            yield reference.key, found.value
