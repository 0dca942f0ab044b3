from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reversi_sdk.references import (
    MISSING,
    Arguments,
    Const,
    Found,
    ListValue,
    Missing,
    ObjectValue,
    Reference,
    ReferenceInvalid,
    Root,
    RootNotAllowed,
    Spelling,
    Unavailable,
    look_up,
    looks_like_reference,
    parse_map_value,
    parse_path,
    parse_reference,
    read_expected_value,
    references_of,
    resolve,
    spelling_of,
)

FLAT, CONTRACT = Spelling.FLAT, Spelling.CONTRACT

GOOD = {
    "argument": (FLAT, "$args.a.b", Root.ARGS, ("a", "b"), False),
    "index": (FLAT, "$result.items[0].id", Root.RESULT, ("items", 0, "id"), False),
    "dotted index": (FLAT, "$result.items.0.id", Root.RESULT, ("items", 0, "id"), False),
    "leading index": (FLAT, "$result[10]", Root.RESULT, (10,), False),
    "optional": (FLAT, "$before.x?", Root.BEFORE, ("x",), True),
    "look-up": (FLAT, "$lookup.id", Root.LOOKUP, ("id",), False),
    "key": (FLAT, "$idempotency_key", Root.IDEMPOTENCY_KEY, (), False),
    "digit first": (FLAT, "$args.3ds", Root.ARGS, ("3ds",), False),
    "dash and dollar": (FLAT, "$args.a-b.$c", Root.ARGS, ("a-b", "$c"), False),
    "request": (CONTRACT, "request.a", Root.ARGS, ("a",), False),
    "response": (CONTRACT, "response.items[0].id?", Root.RESULT, ("items", 0, "id"), True),
    "before": (CONTRACT, "before.x_1", Root.BEFORE, ("x_1",), False),
    "contract key": (CONTRACT, "idempotency_key", Root.IDEMPOTENCY_KEY, (), False),
}
BAD = {
    "empty": (FLAT, ""),
    "no root": (FLAT, "args.id"),
    "unknown root": (FLAT, "$arg.id"),
    "longer root": (FLAT, "$args_x.id"),
    "bare": (FLAT, "$args"),
    "bare optional": (FLAT, "$result?"),
    "bare in a block": (CONTRACT, "response"),
    "wildcard": (FLAT, "$args.*"),
    "wildcard index": (FLAT, "$args.a[*]"),
    "negative index": (FLAT, "$args.a[-1]"),
    "huge index": (FLAT, "$args.a[1234567890123456]"),
    "huge dotted index": (FLAT, "$args.1234567890123456"),
    "empty part": (FLAT, "$args..a"),
    "ends in dot": (FLAT, "$args.a."),
    "line end": (FLAT, "$args.a\n"),
    "space": (FLAT, " $args.a"),
    "two marks": (FLAT, "$args.a??"),
    "mark inside": (FLAT, "$args.a?.b"),
    "filter": (FLAT, "$args.a|upper"),
    "key with part": (FLAT, "$idempotency_key.x"),
    "other spelling": (FLAT, "request.a"),
    "flat in a block": (CONTRACT, "$args.a"),
    "dotted index in a block": (CONTRACT, "response.items.0"),
    "digit first in a block": (CONTRACT, "response.3ds"),
    "line end in a block": (CONTRACT, "response.a\n"),
    "line end after mark": (CONTRACT, "response.a?\n"),
}


@pytest.mark.parametrize(("spelling", "text", "root", "path", "is_optional"), GOOD.values(), ids=GOOD.keys())
def test_parse_reference_reads(spelling: Spelling, text: str, root: Root, path: Any, is_optional: bool) -> None:
    assert parse_reference(text, spelling=spelling) == Reference(root, path, is_optional, spelling)


@pytest.mark.parametrize(("spelling", "text"), BAD.values(), ids=BAD.keys())
def test_parse_reference_refuses(spelling: Spelling, text: str) -> None:
    with pytest.raises(ReferenceInvalid):
        parse_reference(text, spelling=spelling)


def test_parse_reference_refuses_a_root_its_place_cannot_read() -> None:
    with pytest.raises(RootNotAllowed, match=r"allowed: \$args, \$before"):
        parse_reference("$result.id", spelling=FLAT, roots=(Root.BEFORE, Root.ARGS))


def test_parse_reference_cuts_a_long_text_in_its_message() -> None:
    with pytest.raises(ReferenceInvalid) as refused:
        parse_reference("x" * 10_000, spelling=FLAT)

    assert len(str(refused.value)) < 250


def test_both_spellings_share_a_key() -> None:
    flat = parse_reference("$result.items.0.id?", spelling=FLAT)
    block = parse_reference("response.items[0].id", spelling=CONTRACT)

    assert flat.key == block.key == "$result.items.0.id"


_NAMES = st.from_regex(r"[A-Za-z_$][A-Za-z0-9_$-]{0,8}", fullmatch=True)
_PARTS = st.lists(st.one_of(_NAMES, st.integers(0, 999)), min_size=1, max_size=5).map(tuple)


@given(root=st.sampled_from([Root.ARGS, Root.RESULT, Root.BEFORE]), path=_PARTS, spelling=st.sampled_from(Spelling))
def test_a_reference_reads_back_from_its_text(root: Root, path: Any, spelling: Spelling) -> None:
    reference = Reference(root, path, True, spelling)

    assert parse_reference(reference.text, spelling=spelling) == reference


LOOKUPS: dict[str, tuple[str, Any, Found | Missing]] = {
    "member": ("$args.a", {"a": 1}, Found(1)),
    "null": ("$args.a", {"a": None}, Found(None)),
    "item": ("$args.a.1", {"a": [1, 2]}, Found(2)),
    "absent": ("$args.b", {"a": 1}, MISSING),
    "past the end": ("$args.a.2", {"a": [1, 2]}, MISSING),
    "number needs an array": ("$args.a.0", {"a": {"0": 1}}, MISSING),
    "name needs an object": ("$args.a.length", {"a": [1]}, MISSING),
    "nothing below a text": ("$args.a.0", {"a": "xyz"}, MISSING),
    "nothing below null": ("$args.a.b", {"a": None}, MISSING),
    "no inherited name": ("$args.items", {}, MISSING),
}


@pytest.mark.parametrize(("text", "value", "expected"), LOOKUPS.values(), ids=LOOKUPS.keys())
def test_look_up(text: str, value: Any, expected: Found | Missing) -> None:
    assert look_up(parse_reference(text, spelling=FLAT), {Root.ARGS: value}) == expected


def test_look_up_finds_nothing_without_its_root() -> None:
    assert look_up(parse_reference("$result.a", spelling=FLAT), {Root.ARGS: {"a": 1}}) is MISSING


def test_parse_map_value_reads_what_is_nested() -> None:
    value = parse_map_value({"a": ["$args.x", {"const": [1]}], "b": {"c": "$before.y?"}}, spelling=FLAT)

    x, y = (parse_reference(text, spelling=FLAT) for text in ("$args.x", "$before.y?"))
    assert value == ObjectValue({"a": ListValue((x, Const([1]))), "b": ObjectValue({"c": y})})
    assert references_of(value) == (x, y)


@pytest.mark.parametrize("data", [5, True, None, 1.5, "text", {"const": 1, "b": "$args.b"}, ["$args"]])
def test_parse_map_value_refuses(data: Any) -> None:
    with pytest.raises(ReferenceInvalid):
        parse_map_value(data, spelling=FLAT)


@pytest.mark.parametrize("data", [["response.a"], {"a": "response.a"}, {}])
def test_parse_map_value_refuses_nesting_in_a_block(data: Any) -> None:
    with pytest.raises(ReferenceInvalid):
        parse_map_value(data, spelling=CONTRACT)


def test_read_expected_value_tells_references_from_literals() -> None:
    value, problems = read_expected_value(
        {"a": "$args.x", "b": "plain", "c": [1, None], "d": {"const": "$args.x"}}, spelling=FLAT
    )

    assert problems == ()
    assert isinstance(value, ObjectValue)
    assert value.members["a"] == parse_reference("$args.x", spelling=FLAT)
    assert value.members["b"] == Const("plain")
    assert value.members["c"] == ListValue((Const(1), Const(None)))
    assert value.members["d"] == Const("$args.x")


REFERENCE_LIKE = {
    "$args.a": (FLAT, True),
    "$args": (FLAT, True),
    "$args?": (FLAT, True),
    "$5.00": (FLAT, False),
    "$argsx.a": (FLAT, False),
    "$args and more": (FLAT, False),
    "response.a": (CONTRACT, True),
    "before[0]": (CONTRACT, True),
    "response": (CONTRACT, False),
    "5": (CONTRACT, False),
}


@pytest.mark.parametrize("text", REFERENCE_LIKE)
def test_looks_like_reference(text: str) -> None:
    spelling, expected = REFERENCE_LIKE[text]

    assert looks_like_reference(text, spelling=spelling) is expected


def test_spelling_of_goes_by_the_dollar() -> None:
    assert spelling_of("$args.a", default=CONTRACT) is FLAT
    assert spelling_of("request.a", default=CONTRACT) is CONTRACT
    assert spelling_of({"const": 1}, default=CONTRACT) is CONTRACT


def test_parse_path_reads_names_and_indices() -> None:
    assert parse_path("items.0.id") == parse_path("items[0].id") == ("items", 0, "id")
    assert parse_path("[0].id") == (0, "id")


@pytest.mark.parametrize("text", ["", ".", "a..b", "a.", "a b", "a\n", "a.*"])
def test_parse_path_refuses(text: str) -> None:
    with pytest.raises(ReferenceInvalid):
        parse_path(text)


def _resolved(data: dict[str, Any], *, spelling: Spelling = FLAT, **roots: Any) -> Arguments | Unavailable:
    values = {Root(name): value for name, value in roots.items()}
    arguments = {name: parse_map_value(value, spelling=spelling) for name, value in data.items()}
    return resolve(arguments, lambda reference: look_up(reference, values))


def test_resolve_fills_every_argument() -> None:
    data = {"id": "$result.id", "n": {"const": None}, "l": ["$args.a", {"x": "$args.b"}]}

    assert _resolved(data, args={"a": 1, "b": 2}, result={"id": "x"}) == Arguments(
        {"id": "x", "n": None, "l": [1, {"x": 2}]}
    )


def test_resolve_leaves_out_what_is_optional_and_missing() -> None:
    data = {"a": "$args.a?", "l": ["$args.a?", "$args.b"], "o": {"x": "$args.a?", "y": "$args.b"}}

    assert _resolved(data, args={"b": 2}) == Arguments({"l": [2], "o": {"y": 2}})


def test_resolve_drops_an_item_of_which_no_member_is_left() -> None:
    item = {"name": "$args.name?", "note": "$args.note?"}
    data = {"l": [item, {"o": item}, {}, {"const": {}}], "o": {"inner": item}}

    assert _resolved(data, args={}) == Arguments({"l": [{"o": {}}, {}, {}], "o": {"inner": {}}})
    assert _resolved({"l": [item]}, args={"note": None}) == Arguments({"l": [{"note": None}]})


def test_resolve_is_all_or_nothing_and_says_why() -> None:
    found = _resolved({"amount": "$args.amount", "charge_id": ["$result.id"]}, args={"amount": 1}, result={})

    assert found == Unavailable("argument charge_id: $result.id names nothing", "charge_id", "$result.id")


def test_resolve_passes_null_on_in_the_flat_spelling_only() -> None:
    assert _resolved({"a": "$args.a"}, args={"a": None}) == Arguments({"a": None})
    assert isinstance(_resolved({"a": "request.a"}, spelling=CONTRACT, args={"a": None}), Unavailable)
    assert _resolved({"a": "request.a?"}, spelling=CONTRACT, args={"a": None}) == Arguments({})


def test_resolve_passes_a_literal_null_on_in_a_block() -> None:
    assert _resolved({"a": {"const": None}}, spelling=CONTRACT) == Arguments({"a": None})
