"""The typed inputs of a tool: one table that is both its JSON Schema and the check made before anything happens.

The check and the derived schema say the same: what one accepts, the other accepts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from connectors.core.outcomes import ToolError


class FieldKind(StrEnum):
    """The JSON type of an input."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    OBJECT = "object"
    ARRAY = "array"


@dataclass(frozen=True, slots=True)
class Field:
    """One input: its type, and what else it must hold."""

    kind: FieldKind
    description: str
    is_required: bool = True
    is_nullable: bool = False
    choices: tuple[str, ...] = ()
    pattern: str | None = None
    members: Mapping[str, Field] = field(default_factory=dict)
    items: Field | None = None


def input_schema(inputs: Mapping[str, Field]) -> dict[str, Any]:
    """Derive the JSON Schema (draft 2020-12) of a table of inputs."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: _field_schema(declared) for name, declared in inputs.items()},
        "additionalProperties": False,
    }
    required = [name for name, declared in inputs.items() if declared.is_required]
    return schema | ({"required": required} if required else {})


def _field_schema(declared: Field) -> dict[str, Any]:
    schema = input_schema(declared.members) if declared.kind is FieldKind.OBJECT else {}
    schema["type"] = [declared.kind.value, "null"] if declared.is_nullable else declared.kind.value
    schema["description"] = declared.description
    if declared.choices:
        schema["enum"] = [*declared.choices, None] if declared.is_nullable else list(declared.choices)
    if declared.pattern is not None:
        schema["pattern"] = f"^(?:{declared.pattern})$"
    if declared.items is not None:
        schema["items"] = _field_schema(declared.items)
    return schema


def check_arguments(inputs: Mapping[str, Field], arguments: object, *, prefix: str = "") -> Mapping[str, Any]:
    """Return `arguments` as they are when they fit `inputs`; else raise `ToolError` naming the argument."""
    if not isinstance(arguments, Mapping):
        raise ToolError(f"the arguments must be an object, not {_type_name(arguments)}")
    for name in arguments:
        if name not in inputs:
            raise ToolError(f"unknown argument {prefix}{name}")
    for name, declared in inputs.items():
        if name in arguments:
            _check_value(f"{prefix}{name}", declared, arguments[name])
        elif declared.is_required:
            raise ToolError(f"argument {prefix}{name} is required")
    return arguments


def _check_value(name: str, declared: Field, value: object) -> None:
    if value is None and declared.is_nullable:
        return
    if not _has_kind(declared.kind, value):
        raise ToolError(f"argument {name} must be {_article(declared)}, not {_type_name(value)}")
    if declared.choices and value not in declared.choices:
        raise ToolError(f"argument {name} must be one of {', '.join(declared.choices)}")
    if declared.pattern is not None and not re.fullmatch(declared.pattern, str(value)):
        raise ToolError(f"argument {name} does not have the form {declared.pattern}")
    if isinstance(value, Mapping):
        check_arguments(declared.members, value, prefix=f"{name}.")
    elif declared.items is not None and isinstance(value, Sequence):
        for index, item in enumerate(value):
            _check_value(f"{name}[{index}]", declared.items, item)


def _has_kind(kind: FieldKind, value: object) -> bool:
    if isinstance(value, bool):
        return kind is FieldKind.BOOLEAN
    if isinstance(value, float) and kind is FieldKind.INTEGER:
        return value.is_integer()
    return isinstance(value, _PYTHON_TYPES[kind])


_PYTHON_TYPES: Mapping[FieldKind, tuple[type, ...]] = {
    FieldKind.STRING: (str,),
    FieldKind.INTEGER: (int,),
    FieldKind.NUMBER: (int, float),
    FieldKind.BOOLEAN: (bool,),
    FieldKind.OBJECT: (Mapping,),
    FieldKind.ARRAY: (list, tuple),
}


def _article(declared: Field) -> str:
    article = "an" if declared.kind.value[0] in "aio" else "a"
    return f"{article} {declared.kind.value}" + (" or null" if declared.is_nullable else "")


def _type_name(value: object) -> str:
    if value is None:
        return "null"
    for kind in (FieldKind.BOOLEAN, FieldKind.INTEGER, *FieldKind):
        if _has_kind(kind, value):
            return str(kind.value)
    return type(value).__name__
