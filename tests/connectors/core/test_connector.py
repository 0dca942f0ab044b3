from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from connectors.core.outcomes import EffectUncertainError, ToolError
from connectors.core.redaction import REDACTED, Redactor
from connectors.core.tool import CallContext, KeyCarrierRow
from reversi_sdk.errors import ReversiError
from tests.connectors.core.tables import CANCEL, GET, ORDER, shop

SECRET = "tok/en+1"


def raising(error: Exception) -> Any:
    def run(state: object, arguments: Mapping[str, Any], context: CallContext) -> Any:
        raise error

    return run


def test_call_hands_state_arguments_and_context_to_the_tool() -> None:
    connector = shop().bind("state")

    answer = connector.call("shop.get", {"id": "1"}, CallContext(idempotency_key="k"))

    assert answer == {"state": "state", "arguments": {"id": "1"}, "key": "k"}


def test_call_checks_arguments_before_anything_happens() -> None:
    connector = shop(replace(GET, run=raising(AssertionError("ran")))).bind(None)

    with pytest.raises(ToolError, match=r"^unknown argument ix"):
        connector.call("shop.get", {"ix": "1"})


def test_call_refuses_an_unknown_tool() -> None:
    with pytest.raises(ToolError, match=r"^connector shop has no tool shop.sell"):
        shop().bind(None).call("shop.sell", {})


@pytest.mark.parametrize("kind", [ToolError, EffectUncertainError])
@pytest.mark.parametrize("spelling", [SECRET, "tok%2Fen%2B1"])
def test_call_keeps_secrets_out_of_errors(kind: type[ReversiError], spelling: str) -> None:
    failing = replace(GET, run=raising(kind(f"refused {spelling} here")))
    connector = shop(failing).bind(None, secrets=[SECRET])

    with pytest.raises(kind) as caught:
        connector.call("shop.get", {"id": "1"})

    assert str(caught.value) == f"refused {REDACTED} here"
    assert (caught.value.__cause__, caught.value.__suppress_context__) == (None, True)


def test_call_takes_secrets_out_of_refused_arguments() -> None:
    connector = shop().bind(None, secrets=[SECRET])

    with pytest.raises(ToolError) as caught:
        connector.call("shop.get", {"id": "1", SECRET: 1})

    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(("row", "kind"), [(GET, ToolError), (CANCEL, EffectUncertainError)])
def test_bug_in_a_tool_is_an_outcome_and_leaks_nothing(row: Any, kind: type[ReversiError]) -> None:
    connector = shop(replace(row, run=raising(KeyError(SECRET)))).bind(None, secrets=[SECRET])

    with pytest.raises(kind, match=rf"^{row.name} broke down: KeyError: '\[redacted\]'$"):
        connector.call(row.name, {"id": "1"})


def test_connector_shows_no_secret_and_no_state() -> None:
    assert SECRET not in repr(shop().bind(SECRET, secrets=[SECRET]))


@pytest.mark.parametrize(
    ("secrets", "text", "clean"),
    [
        ([], "abc", "abc"),
        ([""], "abc", "abc"),
        (["b"], "abc b", f"a{REDACTED}c {REDACTED}"),
        (["ab", "abcd"], "abcd ab", f"{REDACTED} {REDACTED}"),
    ],
)
def test_redactor_replaces_every_value_longest_first(secrets: list[str], text: str, clean: str) -> None:
    assert Redactor.for_secrets(secrets).clean(text) == clean


def test_manifest_says_all_that_the_row_says() -> None:
    row = replace(ORDER, touches=("order:{{result.id}}",), timeout_ms=500, key_carrier=KeyCarrierRow("key"))

    (manifest,) = shop(row).manifests()

    assert manifest == {
        "tool": "shop.order",
        "description": "Get one.",
        "effect": "reversible",
        "permission": "shop:write",
        "summary": "order {{args.what}}",
        "touches": ["order:{{result.id}}"],
        "timeout_ms": 500,
        "key_carrier": {"argument": "key"},
        "compensation": {
            "tool": "shop.cancel",
            "kind": "compensation",
            "argument_map": {"id": "$result.id"},
            "residue": ["the order stays in the list | canceled"],
            "verification": {
                "tool": "shop.get",
                "arguments": {"id": "$result.id"},
                "expect": {"status": {"const": "canceled"}},
                "retries": 1,
                "backoff_ms": 0,
            },
        },
    }


def test_manifest_of_an_undo_without_residue_is_an_inverse() -> None:
    assert ORDER.undo is not None
    undo = replace(ORDER.undo, residue=(), verification=None, requires_approval=True, timeout_ms=9)
    row = replace(ORDER, undo=undo, key_carrier=KeyCarrierRow())

    (manifest,) = shop(row).manifests()

    assert manifest["key_carrier"] == {"meta": True}
    assert manifest["compensation"] == {
        "tool": "shop.cancel",
        "kind": "inverse",
        "argument_map": {"id": "$result.id"},
        "requires_approval": True,
        "timeout_ms": 9,
    }


def test_manifest_of_an_undo_tool_is_left_to_rollback() -> None:
    (manifest,) = shop(CANCEL).manifests()

    assert (manifest["compensation_only"], manifest["effect"]) == (True, "idempotent")
