"""Durations, templates and the canonical form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reversi_sdk.canonical import CanonicalError, canonical_bytes, find_flaws, lenient_bytes, path_text, sha256_hex
from reversi_sdk.durations import MAX_MS, DurationInvalid, format_duration, parse_duration
from reversi_sdk.references import Root
from reversi_sdk.templates import TemplateInvalid, TemplateUnavailable, parse_template, render_template

DURATIONS = {
    500: 500,
    0: 0,
    1500.0: 1500,
    "500ms": 500,
    "30s": 30_000,
    "15m": 900_000,
    "2h": 7_200_000,
    "1d": 86_400_000,
}


@pytest.mark.parametrize(("value", "expected"), DURATIONS.items())
def test_parse_duration_reads(value: Any, expected: int) -> None:
    assert parse_duration(value) == expected


NO_DURATIONS: list[Any] = [
    -1, "-5s", "", "30", "s", "1.5h", "30 s", "30s\n", "1H", "٣s", True, None, [], {}, 0.5, float("nan"), float("inf"),
    MAX_MS + 1, "40000d", 10**400, 10**5000, "9" * 5000 + "s",
]  # fmt: skip


@pytest.mark.parametrize("value", NO_DURATIONS, ids=range(len(NO_DURATIONS)))
def test_parse_duration_refuses(value: Any) -> None:
    with pytest.raises(DurationInvalid):
        parse_duration(value)


@given(st.integers(0, MAX_MS))
def test_format_duration_reads_back(ms: int) -> None:
    assert parse_duration(format_duration(ms)) == ms


def test_format_duration_takes_the_largest_unit() -> None:
    assert [format_duration(ms) for ms in (0, 1500, 90_000, 7_200_000, 172_800_000)] == [
        "0ms",
        "1500ms",
        "90s",
        "2h",
        "2d",
    ]


def test_template_renders_plain_values_as_json_writes_them() -> None:
    template = parse_template("{{args.s}}|{{ args.i }}|{{args.f}}|{{args.w}}|{{args.b}}|{{args.big}}|{{args.l[0]}}")
    values = {"s": "x y", "i": 5, "f": 0.1, "w": 5.0, "b": True, "big": 2**60, "l": ["é"]}

    assert render_template(template, {Root.ARGS: values}) == "x y|5|0.1|5|true|1152921504606846976|é"


def test_template_keeps_single_braces() -> None:
    assert render_template(parse_template("{a} }{ b"), {}) == "{a} }{ b"


def test_template_lists_its_references() -> None:
    template = parse_template("{{args.a}}-{{result.b.0}}", roots={"args", "result"})

    assert [reference.key for reference in template.references] == ["$args.a", "$result.b.0"]


@pytest.mark.parametrize(
    "text",
    ["{{args.a", "args.a}}", "{{}}", "{{args}}", "{{a}}", "{{args.a?}}", "{{result.a}}", "{{$args.a}}", "{{args.a b}}",
     "{{{args.a}}}}", "{{args.a\n}}"],
)  # fmt: skip
def test_parse_template_refuses(text: str) -> None:
    with pytest.raises(TemplateInvalid):
        parse_template(text)


@pytest.mark.parametrize("value", [None, [], {}, float("nan"), 10**5000], ids=range(5))
def test_render_template_refuses_what_is_not_plain(value: Any) -> None:
    with pytest.raises(TemplateUnavailable) as refused:
        render_template(parse_template("{{args.a}}"), {Root.ARGS: {"a": value}})

    assert refused.value.source == "args.a"


def test_render_template_refuses_what_is_missing() -> None:
    with pytest.raises(TemplateUnavailable, match=r"args\.a names nothing"):
        render_template(parse_template("x{{args.a}}"), {Root.ARGS: {}})


_PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53) + 1, 2**53 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"])),
)
_TEXT_KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
JSON = st.recursive(_PLAIN, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT_KEYS, inner, max_size=4))
# Whatever json.loads can give: big integers, the three names that are no numbers, halves of surrogate pairs.
LOADED = st.recursive(
    st.one_of(_PLAIN, st.integers(), st.floats(), st.text()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
)


def _reordered(value: Any) -> Any:
    match value:
        case dict():
            return {key: _reordered(value[key]) for key in reversed(value)}
        case list():
            return [_reordered(item) for item in value]
        case _:
            return value


@given(JSON)
def test_canonical_bytes_ignore_key_order(value: Any) -> None:
    assert canonical_bytes(value) == canonical_bytes(_reordered(value))


@given(JSON)
def test_lenient_bytes_equal_canonical_ones_where_there_are_any(value: Any) -> None:
    assert lenient_bytes(value) == canonical_bytes(value)


@given(LOADED)
def test_lenient_bytes_never_refuse_and_stay_json(value: Any) -> None:
    json.loads(lenient_bytes(value).decode("utf-8"))


def test_canonical_bytes_of_a_known_value() -> None:
    assert canonical_bytes({"b": [1.0, 1e21, "é\n"], "a": None}) == '{"a":null,"b":[1,1e+21,"é\\n"]}'.encode()


UNCANONICAL: dict[str, tuple[Any, str]] = {
    "big integer": ({"a": [0, 2**53]}, "a[1]: integers of 2^53"),
    "negative big integer": (-(2**53), "integers of 2^53"),
    "endless integer": ({"a": 10**5000}, "a: integers of 2^53"),
    "nan": ({"a": float("nan")}, "a: NaN"),
    "infinite": ([float("-inf")], "[0]: NaN and infinite"),
    "surrogate": ({"a": "\ud800"}, "a: a lone surrogate"),
    "surrogate key": ({"a": {"\udfff": 1}}, "a: a key holds a lone surrogate"),
    "number key": ({"a": {1: 2}}, "a: a key must be a string, not int"),
    "bytes": ({"a": b""}, "a: bytes is not a JSON value"),
    "set": ([[set()]], "[0][0]: set is not a JSON value"),
}


@pytest.mark.parametrize(("value", "message"), UNCANONICAL.values(), ids=UNCANONICAL.keys())
def test_canonical_bytes_refuse_with_the_place(value: Any, message: str) -> None:
    with pytest.raises(CanonicalError) as refused:
        canonical_bytes(value)

    assert str(refused.value).startswith(message)


def test_canonical_bytes_refuse_a_value_inside_itself() -> None:
    value: list[Any] = []
    value.append(value)

    with pytest.raises(CanonicalError, match="nested deeper"):
        canonical_bytes(value)


def test_lenient_bytes_take_any_depth() -> None:
    value: Any = 1
    for _ in range(20_000):
        value = [value]

    assert lenient_bytes(value) == b"[" * 20_000 + b"1" + b"]" * 20_000


def test_lenient_bytes_of_what_json_cannot_carry() -> None:
    value = [2**70, float("nan"), float("-inf"), "a\ud800"]

    assert lenient_bytes(value) == b'[1180591620717411303424,"NaN","-Infinity","a\\ud800"]'


def test_find_flaws_stop_after_so_many_values() -> None:
    flaws = list(find_flaws([1] * 100, max_depth=8, max_values=10))

    assert [(flaw.path, flaw.is_fatal) for flaw in flaws] == [((), True)]


def test_find_flaws_name_nul_where_asked() -> None:
    flaws = find_flaws({"a": "\0", "\0": 1}, max_depth=8, refuses_nul=True)

    assert [flaw.problem for flaw in flaws] == ["a key holds a NUL character", "holds a NUL character"]


def test_path_text_quotes_what_cannot_be_printed() -> None:
    assert path_text(("a", 1, "b\n", "")) == 'a[1]["b\\n"][""]'


def test_sha256_hex_of_a_known_value() -> None:
    assert sha256_hex(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
