"""What is kept of a call so that it can be undone, and what is not (D14)."""

from datetime import UTC, datetime
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import pytest

from approvals.core.before import NOT_DECLARED, Captured
from approvals.core.undo_handles import handle_at_intent, handle_with_result, missing_after, missing_at_intent
from ledger.core.handles import BeforeRead, Handle
from reversi_sdk.model import Manifest
from tests.manifests_registry.factories import make_entry

ARGS = {"item": "book", "want": "gone", "card": "4711", "nested": {"a": [1, 2]}, "dir": "d"}
UNDO: dict[str, Any] = {
    "tool": "shop.cancel",
    "argument_map": {"id": "$result.id", "parts": [{"const": 7}, "$args.nested.a[1]"], "why": "$args.why?"},
    "verification": {
        "tool": "shop.get",
        "arguments": {"id": "$result.ref"},
        "expect": {"state": "$args.want", "kind": "plain"},
    },
}


def manifest(*, undo: Any = None, **fields: Any) -> Manifest:
    return make_entry(tool="shop.order", effect="reversible", compensation={**UNDO, **(undo or {})}, **fields).manifest


def completed(made_of: Manifest, result: Any, args: dict[str, Any] | None = None) -> Handle:
    return handle_with_result(made_of, handle_at_intent(made_of, args or ARGS, NOT_DECLARED), result)


def test_handle_at_intent_keeps_named_arguments_only() -> None:
    handle = handle_at_intent(manifest(), ARGS, NOT_DECLARED)

    assert handle.values == {"$args.nested.a.1": 2, "$args.want": "gone"}


def test_handle_with_result_keeps_named_parts_only() -> None:
    handle = completed(manifest(), {"id": "o1", "ref": 5, "card": "4711"})

    assert handle.values == {"$args.nested.a.1": 2, "$args.want": "gone", "$result.id": "o1", "$result.ref": 5}


def test_handle_holds_what_fallback_lookup_and_window_read() -> None:
    made_of = manifest(
        undo={
            "deadline": {"at": "$result.until"},
            "fallback": {"tool": "shop.refund", "argument_map": {"bill": "$result.bill"}},
        },
        lookup={"tool": "shop.get", "by": "id", "arguments": {"item": "$args.item"}},
    )

    handle = completed(made_of, {"id": 1, "ref": 2, "until": "2026-03-01T00:00:00Z", "bill": "b1"})

    assert {"$result.until", "$result.bill", "$args.item"} <= set(handle.values)


def test_handle_holds_the_arguments_of_a_draft_and_not_its_results() -> None:
    draft = {
        "tool": "shop.draft",
        "arguments": {"item": "$args.item"},
        "handle": "$result.draft",
        "promote": {"tool": "shop.publish", "arguments": {"draft": "$result.draft", "card": "$args.card"}},
    }
    made_of = manifest(draft=draft)

    handle = completed(made_of, {"id": 1, "ref": 2, "draft": 3})

    assert {"$args.item", "$args.card"} <= set(handle.values)
    assert "$result.draft" not in handle.values


def test_handle_with_result_replaces_an_earlier_result() -> None:
    made_of = manifest()
    first = completed(made_of, {"id": "o1", "ref": 5})

    second = handle_with_result(made_of, first, {"id": "o2"})

    assert second.values == {"$args.nested.a.1": 2, "$args.want": "gone", "$result.id": "o2"}


def test_handle_keeps_what_stood_before() -> None:
    undo = {"argument_map": {"value": "$before.value", "id": "$result.id"}}
    made_of = manifest(undo=undo, before={"tool": "shop.get"})

    handle = handle_at_intent(made_of, ARGS, Captured(BeforeRead.FOUND, {"value": None, "other": 1}))

    assert (handle.before, handle.values["$before.value"]) == (BeforeRead.FOUND, None)
    assert "$before.other" not in handle.values


def test_handle_can_repeat_the_read_of_what_stood_before() -> None:
    made_of = manifest(before={"tool": "shop.get", "arguments": {"card": "$args.card"}})

    handle = handle_at_intent(made_of, ARGS, Captured(BeforeRead.FOUND, {}))

    assert handle.values["$args.card"] == "4711"


def test_call_without_manifest_keeps_nothing() -> None:
    assert handle_at_intent(None, ARGS, NOT_DECLARED) == Handle()


class Colour(StrEnum):
    RED = "red"


RESULTS: dict[str, tuple[Any, Any]] = {
    "text": ("o1", "o1"),
    "false": (False, False),
    "null": (None, None),
    "big": (2**70, 2**70),
    "tuple": ((1, (2,)), [1, [2]]),
    "uuid": (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    "path": (PurePosixPath("a/b"), "a/b"),
    "time": (datetime(2026, 3, 1, tzinfo=UTC), "2026-03-01T00:00:00+00:00"),
    "keys": ({1: "a", Colour.RED: "b", UUID(int=1): "c"}, {"1": "a", "red": "b", str(UUID(int=1)): "c"}),
    "enumeration": (Colour.RED, "red"),
}


@pytest.mark.parametrize("case", RESULTS)
def test_handle_with_result_converts(case: str) -> None:
    value, kept = RESULTS[case]

    handle = completed(manifest(), {"id": value, "ref": 1})

    assert handle.values["$result.id"] == kept
    assert Handle.from_bytes(handle.to_bytes()) == handle


def _deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


LOST: dict[str, Any] = {
    "absent": {"ref": 1},
    "nan": {"id": float("nan")},
    "infinite inside": {"id": [float("inf")]},
    "object": {"id": object()},
    "bytes": {"id": b"o1"},
    "too deep": {"id": _deep(5000)},
    "no object": "o1",
    "nothing": None,
}


@pytest.mark.parametrize("case", LOST)
def test_missing_after_names_argument_and_source(case: str) -> None:
    made_of = manifest()

    handle = completed(made_of, LOST[case])

    assert "$result.id" not in handle.values
    assert missing_after(made_of, handle) == "argument id: $result.id names nothing"


def test_missing_at_intent_waits_for_the_result_only() -> None:
    made_of = manifest()

    assert missing_at_intent(made_of, handle_at_intent(made_of, ARGS, NOT_DECLARED)) is None
    assert missing_at_intent(made_of, handle_at_intent(made_of, {}, NOT_DECLARED)) == (
        "argument parts: $args.nested.a[1] names nothing"
    )


def test_missing_after_is_silent_while_the_fallback_serves() -> None:
    made_of = manifest(undo={"fallback": {"tool": "shop.refund", "argument_map": {"item": "$args.item"}}})

    assert missing_after(made_of, completed(made_of, None)) is None


def test_missing_after_looks_at_the_undo_that_serves() -> None:
    absent = {"tool": "shop.delete", "argument_map": {"item": "$args.item"}}
    undo = {"argument_map": {"value": "$before.value"}, "when_absent": absent}
    before = {"tool": "shop.get", "absent_when": {"path": "exists", "equals": False}}
    made_of = manifest(undo=undo, before=before)

    handle = handle_at_intent(made_of, ARGS, Captured(BeforeRead.ABSENT))

    assert missing_after(made_of, handle) is None
    assert handle.values["$args.item"] == "book"


TOUCHES: dict[str, tuple[list[str], dict[str, Any], tuple[str, ...] | None, tuple[str, ...] | None]] = {
    "from arguments": (["file:{{args.dir}}/{{args.item}}"], {}, ("file:d/book",), ("file:d/book",)),
    "from the result": (["order:{{result.id}}"], {"id": 5}, None, ("order:5",)),
    "from both": (["{{args.dir}}/{{result.id}}", "x:{{args.item}}"], {"id": 5}, None, ("d/5", "x:book")),
    "not in the arguments": (["file:{{args.nothing}}"], {}, None, None),
    "not in the result": (["{{args.dir}}/{{result.id}}"], {}, None, None),
    "named once": (["{{args.dir}}", "d"], {}, ("d",), ("d",)),
}


@pytest.mark.parametrize("case", TOUCHES)
def test_touches_are_rendered_when_they_can_be(case: str) -> None:
    templates, result, at_intent, after = TOUCHES[case]
    made_of = manifest(touches=templates)

    handle = handle_at_intent(made_of, ARGS, NOT_DECLARED)

    assert handle.touches == at_intent
    assert handle_with_result(made_of, handle, result).touches == after
