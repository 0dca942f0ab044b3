"""Compare what a read-back answered with what a manifest expects after the undo (D37, D108)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from approvals.core.redaction import REDACTED
from ledger.core.handles import Handle
from reversi_sdk.answers import narrowed, unordered
from reversi_sdk.canonical import lenient_bytes
from reversi_sdk.model import Verification
from reversi_sdk.references import (
    Arguments,
    Found,
    Missing,
    Reference,
    Unavailable,
    follow,
    parse_path,
    references_of,
    resolve,
)
from rollback.core.redaction import names_credential, redacting, without_credentials

_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Expectation:
    """A read that can be made, and what its answer must show; `shown` are the expected values without secrets.

    Of each list in `among` only the items listed there count.
    """

    tool: str
    arguments: Mapping[str, Any]
    expect: Mapping[str, Any]
    shown: Mapping[str, Any]
    reads: int
    backoff_ms: int
    among: Mapping[str, Any] = field(default_factory=dict)
    is_unordered: bool = False


def expectation_of(verification: Verification, handle: Handle, redaction: tuple[Reference, ...]) -> Expectation | str:
    """Fill a declared read-back from the undo handle, or say which value it lacks."""
    arguments = resolve(verification.arguments, handle.find)
    expect = resolve(verification.expect, handle.find)
    among = resolve(verification.among, handle.find)
    for filled in (arguments, expect, among):
        if isinstance(filled, Unavailable):
            return f"cannot verify: arguments unavailable ({filled.reason})"
    dropped = _dropped(verification, handle)
    if dropped is not None:
        return f"cannot verify: {dropped}"
    shown = resolve(verification.expect, redacting(handle.find, redaction))
    return Expectation(
        tool=verification.tool,
        arguments=_values(arguments),
        expect=_values(expect),
        shown={path: _presentable(path, value) for path, value in _values(shown).items()},
        reads=verification.retries + 1,
        backoff_ms=verification.backoff_ms,
        among=_values(among),
        is_unordered=verification.is_unordered,
    )


def _dropped(verification: Verification, handle: Handle) -> str | None:
    """Say what would not be checked after all: a read-back that expects less than is declared confirms nothing."""
    if not verification.expect:
        return "nothing is expected of the answer"
    gaps = (
        f"`{path}` is expected to be what {reference.text} names, which is nothing"
        for path, value in verification.expect.items()
        for reference in references_of(value)
        if isinstance(handle.find(reference), Missing)
    )
    return next(gaps, None)


def _presentable(path: str, value: Any) -> Any:
    return REDACTED if names_credential(parse_path(path)) else without_credentials(value)


def _values(filled: Arguments | Unavailable) -> Mapping[str, Any]:
    return filled.values if isinstance(filled, Arguments) else {}


def first_mismatch(expectation: Expectation, answer: Any) -> str | None:
    """Return the first expectation that the answer does not meet, in words, or None when it meets all."""
    chosen = narrowed(answer, expectation.among)
    if isinstance(chosen, str):
        return chosen
    for path, wanted in expectation.expect.items():
        found = follow(chosen.value, parse_path(path))
        if isinstance(found, Found) and _is_equal(expectation, found.value, wanted):
            continue
        shown = expectation.shown.get(path)
        expected = _json(shown)
        is_secret = shown != wanted
        what = "is missing" if not isinstance(found, Found) else f"is {REDACTED if is_secret else _seen(found.value)}"
        return f"`{path}` {what}, expected {expected}"
    return None


def _is_equal(expectation: Expectation, seen: Any, wanted: Any) -> bool:
    if expectation.is_unordered:
        seen, wanted = unordered(seen), unordered(wanted)
    return lenient_bytes(seen) == lenient_bytes(wanted)


def _seen(value: Any) -> str:
    return _json(without_credentials(value))


def _json(value: Any) -> str:
    text = lenient_bytes(value).decode("utf-8", "replace")
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
