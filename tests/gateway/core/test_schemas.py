"""Arguments against a tool's input schema: what is surely wrong is named, and nothing else stops a call."""

from typing import Any

import pytest

from gateway.core.schemas import MOST_PROBLEMS, Schemas


def found(schema: Any, arguments: dict[str, Any]) -> list[str]:
    return [str(problem) for problem in Schemas().problems("shop.order", schema, arguments)]


ORDER = {
    "type": "object",
    "properties": {
        "amount": {"type": "integer", "minimum": 1},
        "lines": {"type": "array", "items": {"type": "object", "required": ["sku"]}},
        "when": {"type": "string", "format": "date-time"},
    },
    "required": ["amount"],
    "additionalProperties": False,
}

CASES: dict[str, tuple[Any, dict[str, Any], list[str]]] = {
    "fits": (ORDER, {"amount": 3, "lines": [{"sku": "a"}]}, []),
    "missing": (ORDER, {}, ["'amount' is a required property"]),
    "wrong type": (ORDER, {"amount": "3"}, ["amount: '3' is not of type 'integer'"]),
    "true is no integer": (ORDER, {"amount": True}, ["amount: True is not of type 'integer'"]),
    "deep": (ORDER, {"amount": 1, "lines": [{"sku": "a"}, {}]}, ["lines[1]: 'sku' is a required property"]),
    "odd name": ({"properties": {"a b": {"type": "null"}}}, {"a b": 1}, ["['a b']: 1 is not of type 'null'"]),
    "unknown": (ORDER, {"amount": 1, "x": 2}, ["Additional properties are not allowed ('x' was unexpected)"]),
    "several": (
        ORDER,
        {"amount": 0, "lines": 1},
        ["amount: 0 is less than the minimum of 1", "lines: 1 is not of type 'array'"],
    ),
    "formats are not enforced": (ORDER, {"amount": 1, "when": "soon"}, []),
    "another draft": (
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "properties": {"n": {"minimum": 1, "exclusiveMinimum": True}},
        },
        {"n": 1},
        ["n: 1 is less than or equal to the minimum of 1"],
    ),
    "unknown draft": ({"$schema": "urn:of-nobody", "required": ["a"]}, {}, ["'a' is a required property"]),
    "local reference": (
        {"$defs": {"id": {"type": "integer"}}, "properties": {"id": {"$ref": "#/$defs/id"}}},
        {"id": "7"},
        ["id: '7' is not of type 'integer'"],
    ),
    "only alternative": (
        {"properties": {"a": {"anyOf": [{"type": "object", "required": ["b"]}]}}},
        {"a": {}},
        ["a: 'b' is a required property"],
    ),
    "alternatives": (
        {"properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}},
        {"a": 1},
        ["a: 1 is not valid under any of the given schemas"],
    ),
    "no schema": (None, {"a": 1}, []),
    "broken schema": ({"type": "thing"}, {"a": 1}, []),
    "reference to nowhere": ({"properties": {"a": {"$ref": "#/$defs/gone"}}}, {"a": 1}, []),
    "reference to elsewhere": ({"properties": {"a": {"$ref": "https://schemas.invalid/a.json"}}}, {"a": 1}, []),
    "pattern": ({"properties": {"a": {"pattern": "^x"}}}, {"a": "y"}, ["a: 'y' does not match '^x'"]),
    "pattern of another dialect": (
        {"properties": {"a": {"pattern": r"^\p{L}+$"}, "b": {"type": "null"}}},
        {"a": "7", "b": 1},
        ["b: 1 is not of type 'null'"],
    ),
    "name pattern of another dialect": (
        {"patternProperties": {r"^\p{L}": False}, "required": ["b"]},
        {"a": 1},
        ["'b' is a required property"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_problems_name_what_is_surely_wrong(case: str) -> None:
    schema, arguments, expected = CASES[case]

    assert found(schema, arguments) == expected


def test_problems_have_a_path_and_a_message() -> None:
    (problem,) = Schemas().problems("shop.order", ORDER, {"amount": 0})

    assert problem.to_json() == {"path": "amount", "message": "0 is less than the minimum of 1"}


def test_problems_are_few_and_short() -> None:
    schema = {"additionalProperties": {"type": "null"}}

    problems = found(schema, {f"n{number}": "x" * 1000 for number in range(100)})

    assert len(problems) == MOST_PROBLEMS
    assert max(map(len, problems)) < 320


def test_problems_of_bottomless_arguments_are_told() -> None:
    schema = {"$defs": {"node": {"properties": {"next": {"$ref": "#/$defs/node"}}}}, "$ref": "#/$defs/node"}
    arguments: dict[str, Any] = {}
    for _ in range(5000):
        arguments = {"next": arguments}

    assert found(schema, arguments) == ["nested too deeply to be checked"]


def test_problems_follow_a_schema_that_changed() -> None:
    schemas = Schemas()
    schemas.problems("shop.order", {"required": ["a"]}, {})

    assert [str(each) for each in schemas.problems("shop.order", {"required": ["b"]}, {"a": 1})] == [
        "'b' is a required property"
    ]
