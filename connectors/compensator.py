"""Runs compensation calls on connectors: the call JSON of a rollback in, the undo tool's result out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from connectors.core.connector import Connector
from connectors.core.fields import Field, FieldKind, check_arguments
from connectors.core.outcomes import ToolError
from connectors.core.tool import CallContext, Tool
from reversi_sdk.errors import InvalidInput

Compensator = Callable[[Mapping[str, Any]], Any]

CALL_FIELDS = {
    "run_id": Field(FieldKind.STRING, "The run that is rolled back."),
    "step": Field(FieldKind.INTEGER, "The step that is undone."),
    "tool": Field(FieldKind.STRING, "The undo tool."),
    "original_tool": Field(FieldKind.STRING, "The tool of the step."),
    "args": Field(FieldKind.OBJECT, "The undo tool's arguments."),
    "idempotency_key": Field(FieldKind.STRING, "The compensation's key."),
    "overwrite": Field(FieldKind.BOOLEAN, "Whether newer work may be overwritten.", is_required=False),
}


class CallMalformed(InvalidInput):
    """The JSON is not a call; nothing was run."""

    code = "call_malformed"


def compensator_for(connectors: Iterable[Connector]) -> Compensator:
    """Return the function that runs a compensation call on whichever of `connectors` offers its tool.

    It raises `CallMalformed` for what is no call, `ToolError` when nothing was undone, `EffectUncertainError` when
    nobody can say.
    """
    known = tuple(connectors)

    def compensate(call: Mapping[str, Any]) -> Any:
        checked = checked_call(call)
        connector, tool = find_tool(known, checked["tool"])
        if tool.is_reading:
            raise ToolError(f"{tool.name} only reads: it undoes nothing")
        context = CallContext(
            idempotency_key=checked["idempotency_key"], is_overwrite_allowed=checked.get("overwrite", False)
        )
        return connector.call(tool.name, checked["args"], context)

    return compensate


def checked_call(call: object) -> Mapping[str, Any]:
    """Return `call` as it is when it has the form of a compensation call; members not known here are let be."""
    if not isinstance(call, Mapping):
        raise CallMalformed("a call must be a JSON object")
    known = {name: value for name, value in call.items() if name in CALL_FIELDS}
    try:
        arguments = known.get("args")
        check_arguments(CALL_FIELDS, {**known, "args": {}} if isinstance(arguments, Mapping) else known)
    except ToolError as error:
        raise CallMalformed(f"not a compensation call: {error}") from None
    return known


def find_tool(connectors: Iterable[Connector], name: str) -> tuple[Connector, Tool]:
    """Return the tool `name` and the connector that offers it."""
    for connector in connectors:
        if name in connector.tools:
            return connector, connector.tools[name]
    raise ToolError(f"no enabled connector offers {name}")
