from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.core.fields import Field, FieldKind, check_arguments, input_schema
from connectors.core.outcomes import ToolError

INPUTS = {
    "name": Field(FieldKind.STRING, "Any text."),
    "color": Field(FieldKind.STRING, "One of two.", is_required=False, is_nullable=True, choices=("red", "blue")),
    "code": Field(FieldKind.STRING, "Three digits.", is_required=False, pattern="[0-9]{3}"),
    "count": Field(FieldKind.INTEGER, "How many.", is_required=False),
    "price": Field(FieldKind.NUMBER, "How much.", is_required=False),
    "is_gift": Field(FieldKind.BOOLEAN, "Whether wrapped.", is_required=False),
    "address": Field(
        FieldKind.OBJECT,
        "Where to.",
        is_required=False,
        members={
            "street": Field(FieldKind.STRING, "The street."),
            "floor": Field(FieldKind.INTEGER, "The floor.", is_required=False, is_nullable=True),
        },
    ),
    "tags": Field(FieldKind.ARRAY, "Labels.", is_required=False, items=Field(FieldKind.STRING, "A label.")),
}

REFUSED: dict[str, tuple[Any, str]] = {
    "no object": ([], "the arguments must be an object, not array"),
    "unknown": ({"name": "x", "nmae": "y"}, "unknown argument nmae"),
    "missing": ({}, "argument name is required"),
    "null": ({"name": None}, "argument name must be a string, not null"),
    "number for text": ({"name": 1.5}, "argument name must be a string, not number"),
    "object for text": ({"name": {}}, "argument name must be a string, not object"),
    "text for integer": ({"name": "x", "count": "1"}, "argument count must be an integer, not string"),
    "fraction for integer": ({"name": "x", "count": 1.5}, "argument count must be an integer, not number"),
    "boolean for integer": ({"name": "x", "count": True}, "argument count must be an integer, not boolean"),
    "integer for boolean": ({"name": "x", "is_gift": 1}, "argument is_gift must be a boolean, not integer"),
    "other choice": ({"name": "x", "color": "green"}, "argument color must be one of red, blue"),
    "number for nullable": ({"name": "x", "color": 1}, "argument color must be a string or null, not integer"),
    "other form": ({"name": "x", "code": "12"}, r"argument code does not have the form \[0-9\]\{3\}"),
    "newline after the form": ({"name": "x", "code": "123\n"}, "argument code does not have the form"),
    "unknown member": ({"name": "x", "address": {"street": "s", "zip": 1}}, "unknown argument address.zip"),
    "missing member": ({"name": "x", "address": {}}, "argument address.street is required"),
    "member of another type": (
        {"name": "x", "address": {"street": 1}},
        "argument address.street must be a string, not integer",
    ),
    "item of another type": ({"name": "x", "tags": ["a", 1]}, r"argument tags\[1\] must be a string, not integer"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_check_refuses_and_names_the_argument(case: str) -> None:
    arguments, words = REFUSED[case]

    with pytest.raises(ToolError, match=rf"^{words}"):
        check_arguments(INPUTS, arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": ""},
        {"name": "x", "color": None, "code": "123", "count": 2.0, "price": 1, "is_gift": False},
        {"name": "x", "address": {"street": "s", "floor": None}, "tags": []},
    ],
)
def test_check_returns_what_fits(arguments: dict[str, Any]) -> None:
    assert check_arguments(INPUTS, arguments) is arguments


values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats(-2, 2) | st.sampled_from(("", "red", "123", "x")),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(("street", "floor", "other")), inner, max_size=2)
    ),
    max_leaves=4,
)


@given(st.dictionaries(st.sampled_from((*INPUTS, "other")), values) | values)
def test_check_and_schema_accept_the_same(arguments: Any) -> None:
    is_valid = jsonschema.Draft202012Validator(input_schema(INPUTS)).is_valid(arguments)

    try:
        check_arguments(INPUTS, arguments)
    except ToolError:
        assert not is_valid
    else:
        assert is_valid


def test_schema_is_closed_at_every_level() -> None:
    schema = input_schema(INPUTS)

    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["required"] == ["name"]
    assert (schema["additionalProperties"], schema["properties"]["address"]["additionalProperties"]) == (False, False)
    assert schema["properties"]["color"] == {
        "type": ["string", "null"],
        "description": "One of two.",
        "enum": ["red", "blue", None],
    }
