"""What a tool's input schema says about the arguments that Reversi fills in itself (D41)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CONFIRM = "confirm"


def has_input(tool: Mapping[str, Any], name: str) -> bool:
    """Tell whether the tool, as it is listed, takes an argument of that name."""
    return name in _properties(tool)


def confirmation_of(tool: Mapping[str, Any]) -> dict[str, bool]:
    """Return the confirmations that the tool requires: `confirm`, and every required boolean that can only be true."""
    schema = _schema(tool)
    required = schema.get("required")
    names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    properties = _properties(tool)
    return {name: True for name in names if _is_confirmation(name, properties.get(name))}


def _is_confirmation(name: str, schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    is_only_true = schema.get("const") is True or schema.get("enum") == [True]
    return is_only_true or (name == CONFIRM and schema.get("type") == "boolean")


def _schema(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    schema = tool.get("inputSchema")
    return schema if isinstance(schema, dict) else {}


def _properties(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = _schema(tool).get("properties")
    return properties if isinstance(properties, dict) else {}
