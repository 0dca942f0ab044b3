"""The line that tells what a call does: useful, short, and without what must not be shown."""

from collections.abc import Mapping
from typing import Any

import pytest

from approvals.core.redaction import hide, is_credential, redaction_paths
from approvals.core.summary import LIMIT, summarise
from tests.manifests_registry.factories import make_entry

CASES: dict[str, tuple[dict[str, Any], Mapping[str, Any], str]] = {
    "template": (
        {"summary": "order {{args.item}} for {{args.amount}}"},
        {"item": "book", "amount": 7},
        "order book for 7",
    ),
    "template without its value": ({"summary": "order {{args.item}}"}, {"amount": 7}, "shop.order amount=7"),
    "default": ({}, {"item": "book", "amount": 7, "gift": True}, "shop.order item=book amount=7 gift=true"),
    "default quotes": ({}, {"item": "a book"}, 'shop.order item="a book"'),
    "default leaves out what is nested": ({}, {"items": [1], "to": {"a": 1}, "n": None}, "shop.order n=null"),
    "default only measures long texts": ({}, {"body": "x" * 41}, "shop.order body=(41 characters)"),
    "default hides credentials": ({}, {"api_key": "k-1234", "item": "book"}, "shop.order api_key=[redacted] item=book"),
    "redacted in a template": (
        {"summary": "pay with {{args.card.number}}", "audit": {"redaction": ["$args.card"]}},
        {"card": {"number": "4711"}},
        "pay with [redacted]",
    ),
    "redacted by default": (
        {"audit": {"redaction": ["$args.card"]}},
        {"card": "4711", "item": "book"},
        "shop.order card=[redacted] item=book",
    ),
    "controls are made visible": ({"summary": "{{args.a}}"}, {"a": "x\x1b[31m\n\u202ey"}, "x\\u{1b}[31m\\n\\u{202e}y"),
}


@pytest.mark.parametrize("case", CASES)
def test_summarise(case: str) -> None:
    fields, args, line = CASES[case]
    manifest = make_entry(tool="shop.order", **fields).manifest

    assert summarise("shop.order", manifest, args, redaction_paths(manifest, ())) == line


def test_summarise_needs_no_manifest() -> None:
    assert summarise("shop.order", None, {"item": "book"}, ()) == "shop.order item=book"


def test_summarise_hides_what_the_deployment_redacts() -> None:
    paths = redaction_paths(None, ["$args.item", "request.card"])

    assert summarise("shop.order", None, {"item": "book", "card": 4711}, paths) == (
        "shop.order item=[redacted] card=[redacted]"
    )


def test_summarise_is_short() -> None:
    args = {f"argument{number}": number for number in range(100)}

    assert len(summarise("shop.order", None, args, ())) == LIMIT


CREDENTIALS = {
    "password": True,
    "cardToken": True,
    "API_KEY": True,
    "privateKey": True,
    "client_secret": True,
    "key": False,
    "author": False,
    "monkey": False,
    "tokenizer": False,
    "path": False,
}


@pytest.mark.parametrize("name", CREDENTIALS)
def test_is_credential(name: str) -> None:
    assert is_credential(name) is CREDENTIALS[name]


def test_hide_removes_values_of_redacted_paths_from_a_text() -> None:
    paths = redaction_paths(None, ["$args.card", "$args.pins"])
    args = {"card": {"number": "4711-0815", "cvc": 12}, "pins": ["abcd", "abcdef"], "item": "book"}

    shown = hide("book: 4711-0815 refused, 12 times; abcdef, abcd", args, paths)

    assert shown == "book: [redacted] refused, 12 times; [redacted], [redacted]"


def test_hide_removes_what_is_named_like_a_credential() -> None:
    args = {"login": {"password": "hunter22", "user": "dana"}, "keys": [{"api_key": "k-1234"}], "token": None}

    assert hide("dana: hunter22 and k-1234 refused", args, ()) == "dana: [redacted] and [redacted] refused"


HANDED_ON: dict[str, dict[str, Any]] = {
    "argument": {"argument_map": {"password": "$args.plain"}},
    "inside an argument": {"argument_map": {"login": [{"auth": ["$args.plain"]}]}},
    "read-back": {"verification": {"tool": "shop.get", "arguments": {"token": "$args.plain"}, "expect": {"a": 1}}},
    "expectation": {"verification": {"tool": "shop.get", "arguments": {}, "expect": {"a.token": "$args.plain"}}},
    "fallback": {"fallback": {"tool": "shop.drop", "argument_map": {"secret": "$args.plain"}}},
}


@pytest.mark.parametrize("place", HANDED_ON)
def test_value_that_a_follow_up_takes_as_a_credential_is_hidden(place: str) -> None:
    undo = {"tool": "shop.cancel", "argument_map": {"id": "$args.id"}, "deadline": {"within_ms": 1000}}
    manifest = make_entry(tool="shop.order", effect="reversible", compensation={**undo, **HANDED_ON[place]}).manifest
    args = {"id": "o1", "plain": "hunter22"}

    paths = redaction_paths(manifest, ())

    assert summarise("shop.order", manifest, args, paths) == "shop.order id=o1 plain=[redacted]"
    assert hide("hunter22 for o1", args, paths) == "[redacted] for o1"
