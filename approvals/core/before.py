"""The state that stood before a call: what a read of it showed, and whether that is enough to undo by (D35).

The same reading of an answer serves three moments: the capture before the call, the after-value when the call has
succeeded, and the executor's look before it overwrites something (D23). `after_digest` gives equal digests for equal
states, so the last two can be compared without keeping the values. Where a manifest says that the order of lists means
nothing, neither the order of items nor the index by which a map names one makes a difference (D108).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, TypeGuard

from approvals.core.follow_ups import references_to, required_references
from approvals.core.results import as_json, is_storable
from ledger.core.handles import BeforeRead, Handle
from reversi_sdk.answers import narrowed, unordered
from reversi_sdk.canonical import lenient_bytes
from reversi_sdk.model import AbsentWhen, Before, Manifest, UnusableWhen
from reversi_sdk.references import (
    MISSING,
    Arguments,
    Finder,
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
    return resolve(before.arguments, _in_arguments(args))


def _in_arguments(args: Mapping[str, Any]) -> Finder:
    return lambda reference: look_up(reference, {Root.ARGS: args})


def capture(manifest: Manifest, answer: BeforeAnswer, args: Mapping[str, Any]) -> Captured:
    """Judge the answer of the read made before a call with these arguments."""
    before = manifest.before
    if before is None:
        return NOT_DECLARED
    state = _read(before, answer, _in_arguments(args))
    problem = state if isinstance(state, str) else _unusable(before.unusable_when, state) or _gap(manifest, state)
    if problem is None and isinstance(state, Captured):
        return state
    return Captured(BeforeRead.MISSING, failure=f"{PREFIX}: {problem}")


def unread(reason: str) -> Captured:
    """Return what is known when the read could not even be made."""
    return Captured(BeforeRead.MISSING, failure=f"{PREFIX}: {reason}")


def _read(before: Before, answer: BeforeAnswer, find: Finder) -> Captured | str:
    rule = before.absent_when
    if answer.error is not None:
        is_absent = rule is not None and rule.error is not None and fnmatchcase(answer.error, rule.error)
        return Captured(BeforeRead.ABSENT) if is_absent else answer.error
    if not answer.is_found or (rule is not None and _says_absent(rule, answer.value)):
        return Captured(BeforeRead.ABSENT)
    seen = _chosen(before, as_json(answer.value), find)
    return seen if isinstance(seen, str) else Captured(BeforeRead.FOUND, seen.value)


def _chosen(before: Before, value: Any, find: Finder) -> Found | str:
    listed = resolve(before.among, find)
    return listed.reason if isinstance(listed, Unavailable) else narrowed(value, listed.values)


def _unusable(rule: UnusableWhen | None, state: Captured) -> str | None:
    """Say that nothing could be restored from what was read; it can still be recognised by its digest."""
    found = MISSING if rule is None or state.read is not BeforeRead.FOUND else follow(state.value, rule.path)
    if rule is None or isinstance(found, Missing) or not isinstance(found.value, str):
        return None
    if not fnmatchcase(found.value, rule.glob):
        return None
    return f"`{'.'.join(map(str, rule.path))}` cannot be restored from: it matches {rule.glob!r}"


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


def after_digest(
    keyed_digest: Callable[[bytes], str], manifest: Manifest, answer: BeforeAnswer, find: Finder
) -> str | None:
    """Return the digest of the state an answer shows, or None when the read failed: the state is unknown.

    `keyed_digest` is the run's (HMAC under its salt), `find` finds what is kept of the call. Only the values that the
    manifest's maps name count.
    """
    before = manifest.before
    if before is None:
        return None
    state = _read(before, answer, find)
    if isinstance(state, str):
        return None
    values = [(reference, look_up(reference, state.roots)) for reference in references_to(manifest, Root.BEFORE)]
    storable = {reference: found.value for reference, found in values if _is_storable(found)}
    return keyed_digest(_digested(before, state.read, storable))


def _is_storable(found: Found | Missing) -> TypeGuard[Found]:
    return isinstance(found, Found) and is_storable(found.value)


def before_digest(keyed_digest: Callable[[bytes], str], manifest: Manifest, handle: Handle) -> str | None:
    """Return the digest of the state that stood before the call, to compare with `after_digest`; None when unknown."""
    before = manifest.before
    if before is None or handle.before not in (BeforeRead.FOUND, BeforeRead.ABSENT):
        return None
    values = [(reference, handle.find(reference)) for reference in references_to(manifest, Root.BEFORE)]
    kept = {reference: found.value for reference, found in values if isinstance(found, Found)}
    return keyed_digest(_digested(before, handle.before, kept))


def _digested(before: Before, read: BeforeRead, values: Mapping[Reference, Any]) -> bytes:
    named: Any = {reference.key: value for reference, value in values.items()}
    if before.is_unordered:
        named = _without_order(values)
    return lenient_bytes({"found": read is BeforeRead.FOUND, "values": named})


def _without_order(values: Mapping[Reference, Any]) -> Any:
    """Put named values together as they stood, so that what belongs to one item of a list stays together without it."""
    here = [value for reference, value in values.items() if not reference.path]
    heads = dict.fromkeys(reference.path[0] for reference in values if reference.path)
    below = {head: _without_order(_below(values, head)) for head in heads}
    return {
        "value": unordered(here),
        "names": {head: inner for head, inner in below.items() if isinstance(head, str)},
        "items": unordered([inner for head, inner in below.items() if isinstance(head, int)]),
    }


def _below(values: Mapping[Reference, Any], head: str | int) -> Mapping[Reference, Any]:
    return {replace(each, path=each.path[1:]): value for each, value in values.items() if each.path[:1] == (head,)}
