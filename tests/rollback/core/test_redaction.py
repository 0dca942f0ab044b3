"""What a tool says never shows the values that are hidden everywhere else (D14)."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.core.handles import Handle, HandleLost
from reversi_sdk.references import Spelling, parse_reference
from rollback.core.redaction import hide_in_text

CASES: dict[str, tuple[dict[str, Any], list[str], str, str]] = {
    "declared": ({"$args.card": "tok_4242"}, ["$args.card"], "no tok_4242 here", "no [redacted] here"),
    "declared further in": ({"$args.card": {"no": "tok_4242"}}, ["$args.card.no"], "tok_4242", "[redacted]"),
    "declared further out": ({"$result.card.no": "tok_4242"}, ["$result.card"], "tok_4242", "[redacted]"),
    "named like a credential": ({"$args.api_token": "tok_4242"}, [], "tok_4242!", "[redacted]!"),
    "named like a credential inside": ({"$before.c": [{"pin": "tok_4242"}]}, [], "tok_4242", "[redacted]"),
    "another root": ({"$result.card": "tok_4242"}, ["$args.card"], "tok_4242", "tok_4242"),
    "another name": ({"$args.order": "o-4711"}, ["$args.card"], "o-4711", "o-4711"),
    "longest first": ({"$args.a": "abcd", "$args.b": "abcdef"}, ["$args.a", "$args.b"], "abcdef", "[redacted]"),
}


@pytest.mark.parametrize("case", CASES)
def test_hide_in_text_hides_exactly_what_is_redacted(case: str) -> None:
    values, paths, said, shown = CASES[case]
    redacted = [parse_reference(path, spelling=Spelling.FLAT) for path in paths]

    assert hide_in_text(said, Handle(values), redacted) == shown


def test_hide_in_text_needs_a_handle() -> None:
    assert hide_in_text("said", HandleLost("purged"), []) == "said"
