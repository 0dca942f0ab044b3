"""A small connector made for tests, and ways to vary one row of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from connectors.core.connector import ConnectorSpec
from connectors.core.fields import Field, FieldKind
from connectors.core.tool import CallContext, Tool, UndoRow, VerificationRow
from reversi_sdk.model import Effect

ID = Field(FieldKind.STRING, "Which one.")


def echo(state: object, arguments: Mapping[str, Any], context: CallContext) -> Any:
    return {"state": state, "arguments": arguments, "key": context.idempotency_key}


GET = Tool(
    name="shop.get",
    effect=Effect.READ_ONLY,
    permission="shop:read",
    description="Get one.",
    inputs={"id": ID},
    run=echo,
    summary="get {{args.id}}",
)
CANCEL = replace(
    GET, name="shop.cancel", effect=Effect.IDEMPOTENT, permission="shop:write", is_compensation_only=True, touches=()
)
ORDER = replace(
    GET,
    name="shop.order",
    effect=Effect.REVERSIBLE,
    permission="shop:write",
    inputs={"what": Field(FieldKind.STRING, "What to order.")},
    summary="order {{args.what}}",
    undo=UndoRow(
        tool="shop.cancel",
        argument_map={"id": "$result.id"},
        residue=("the order stays in the list | canceled",),
        verification=VerificationRow(
            tool="shop.get", arguments={"id": "$result.id"}, expect={"status": {"const": "canceled"}}
        ),
    ),
)


def shop(*rows: Tool) -> ConnectorSpec:
    return ConnectorSpec("shop", rows or (GET, ORDER, CANCEL))
