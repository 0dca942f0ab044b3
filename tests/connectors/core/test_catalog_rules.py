from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from connectors.catalog import check_catalog, connector_names, connector_spec
from connectors.core.catalog_rules import catalog_problems
from connectors.core.tool import Tool, UndoRow, VerificationRow
from connectors.core.tool_table import tool_table
from reversi_sdk.errors import NotFound
from reversi_sdk.model import Effect
from tests.connectors.core.tables import CANCEL, GET, ORDER, shop


def undo(**changes: Any) -> Tool:
    assert ORDER.undo is not None
    return replace(ORDER, undo=replace(ORDER.undo, **changes))


def read_back(**changes: Any) -> Tool:
    assert ORDER.undo is not None
    assert ORDER.undo.verification is not None
    return undo(verification=replace(ORDER.undo.verification, **changes))


BROKEN: dict[str, tuple[tuple[Tool, ...], str]] = {
    "prefix": ((replace(GET, name="store.get"),), "store.get: the name must start with shop."),
    "twice": ((GET, GET), "shop.get: the name is used 2 times"),
    "no undo": ((replace(ORDER, undo=None),), "shop.order: effect reversible and no undo contradict each other"),
    "undo of a read": (
        (replace(GET, undo=UndoRow("shop.cancel", {"id": "$args.id"})), CANCEL),
        "shop.get: effect read_only and an undo contradict each other",
    ),
    "undo is missing": ((ORDER, GET), "shop.order: its undo shop.cancel is no tool of shop"),
    "undo is not idempotent": (
        (ORDER, GET, replace(CANCEL, effect=Effect.IRREVERSIBLE)),
        "shop.order: its undo shop.cancel must be idempotent and only for undoing",
    ),
    "undo is open to agents": (
        (ORDER, GET, replace(CANCEL, is_compensation_only=False)),
        "shop.order: its undo shop.cancel must be idempotent and only for undoing",
    ),
    "map has too much": (
        (undo(argument_map={"id": "$result.id", "why": {"const": "$args.x"}}), GET, CANCEL),
        "shop.order: shop.cancel takes no argument why",
    ),
    "map has too little": (
        (undo(argument_map={}), GET, CANCEL),
        "shop.order: shop.cancel needs the argument id, which is not mapped",
    ),
    "map reads what is not there": (
        (undo(argument_map={"id": ["$args.which.one"]}), GET, CANCEL),
        "shop.order: $args.which.one reads an argument that the tool does not have",
    ),
    "read-back is missing": (
        (read_back(tool="shop.look"), GET, CANCEL),
        "shop.order: its read-back shop.look is no read-only tool of shop",
    ),
    "read-back changes things": (
        (read_back(tool="shop.cancel"), GET, CANCEL),
        "shop.order: its read-back shop.cancel is no read-only tool of shop",
    ),
    "read-back map": (
        (read_back(arguments={}), GET, CANCEL),
        "shop.order: shop.get needs the argument id, which is not mapped",
    ),
    "read-back expects nothing": ((read_back(expect={}), GET, CANCEL), "shop.order: its read-back expects nothing"),
    "summary": (
        (replace(GET, summary="get {{args.number}}"),),
        "shop.get: get {{args.number}} reads an argument that the tool does not have",
    ),
    "touches": (
        (replace(CANCEL, touches=("x:{{ args.number }}",)),),
        "shop.cancel: x:{{ args.number }} reads an argument that the tool does not have",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_tables_are_told(case: str) -> None:
    rows, problem = BROKEN[case]

    assert problem in catalog_problems([shop(*rows)])


def test_sound_tables_are_let_pass() -> None:
    assert catalog_problems([shop()]) == ()


def test_read_back_may_be_left_out() -> None:
    assert catalog_problems([shop(undo(verification=None), GET, CANCEL)]) == ()


def test_shipped_catalog_is_sound() -> None:
    assert check_catalog() == ()


def test_catalog_names_its_connectors() -> None:
    assert connector_names() == ("fs",)
    assert connector_spec("fs").name == "fs"


@pytest.mark.parametrize("name", ["", "os", "core.fs", "fs\n"])
def test_catalog_imports_nothing_else(name: str) -> None:
    with pytest.raises(NotFound, match=r"^no connector is named"):
        connector_spec(name)


def test_verification_rows_try_once_unless_told() -> None:
    assert VerificationRow("shop.get", {}, {}).retries == 1


def test_tool_table_has_a_row_for_each_tool() -> None:
    assert tool_table(shop()) == (
        "| Tool | Effect | Permission | Undone by | What stays |\n"
        "| --- | --- | --- | --- | --- |\n"
        "| `shop.get` | read_only: read | `shop:read` |  |  |\n"
        "| `shop.order` | reversible: write, can be undone | `shop:write` | `shop.cancel` "
        "| the order stays in the list \\| canceled |\n"
        "| `shop.cancel` | idempotent: write, cannot be undone | `shop:write` | only used to undo |  |\n"
    )
