"""What a read of the state before shows (D35)."""

import hashlib
from typing import Any

import pytest

from approvals.core.before import BeforeAnswer, after_digest, capture
from ledger.core.handles import BeforeRead
from reversi_sdk.model import Manifest
from tests.manifests_registry.factories import make_entry

UNDO: dict[str, Any] = {
    "tool": "kv.put",
    "self_inverse": True,
    "argument_map": {"key": "$args.key", "value": "$before.value"},
}
WHEN_ABSENT = {"tool": "kv.delete", "argument_map": {"key": "$args.key"}}
PATH_RULE = {"path": "exists", "equals": False}
ERROR_RULE = {"error": "*not found*"}


def manifest(*, absent_when: Any = None, when_absent: Any = None, **before: Any) -> Manifest:
    extra = {} if absent_when is None else {"absent_when": absent_when}
    undo = UNDO if when_absent is None else {**UNDO, "when_absent": when_absent}
    read = {"tool": "kv.get", "arguments": {"key": "$args.key"}, **extra, **before}
    return make_entry(tool="kv.put", effect="reversible", compensation=undo, before=read).manifest


FOUND, ABSENT, MISSING = BeforeRead.FOUND, BeforeRead.ABSENT, BeforeRead.MISSING
with_rule = {"absent_when": PATH_RULE, "when_absent": WHEN_ABSENT}
with_error = {"absent_when": ERROR_RULE, "when_absent": WHEN_ABSENT}
GAP = "cannot capture the state before: $before.value names nothing"

CASES: dict[str, tuple[dict[str, Any], BeforeAnswer, BeforeRead, str | None]] = {
    "found": ({}, BeforeAnswer(value={"value": 1}), FOUND, None),
    "found null is a value": ({}, BeforeAnswer(value={"value": None}), FOUND, None),
    "required value missing": ({}, BeforeAnswer(value={"other": 1}), MISSING, GAP),
    "required value is no number": ({}, BeforeAnswer(value={"value": float("nan")}), MISSING, GAP),
    "failed": ({}, BeforeAnswer(error="boom"), MISSING, "cannot capture the state before: boom"),
    "failed beside a path rule": (
        with_rule,
        BeforeAnswer(error="boom"),
        MISSING,
        "cannot capture the state before: boom",
    ),
    "absent by path": (with_rule, BeforeAnswer(value={"exists": False}), ABSENT, None),
    "present by path": (with_rule, BeforeAnswer(value={"exists": True, "value": 1}), FOUND, None),
    "the rule compares exactly": (with_rule, BeforeAnswer(value={"exists": 0}), MISSING, GAP),
    "absent by error": (with_error, BeforeAnswer(error="key not found"), ABSENT, None),
    "another error is a failure": (
        with_error,
        BeforeAnswer(error="no route"),
        MISSING,
        "cannot capture the state before: no route",
    ),
    "absent as told": (with_rule, BeforeAnswer(is_found=False), ABSENT, None),
    "absent without an undo for it": ({"absent_when": PATH_RULE}, BeforeAnswer(value={"exists": False}), MISSING, GAP),
}


@pytest.mark.parametrize("case", CASES)
def test_capture(case: str) -> None:
    fields, answer, read, failure = CASES[case]

    captured = capture(manifest(**fields), answer)

    assert (captured.read, captured.failure) == (read, failure)


def test_capture_of_an_undeclared_read_is_none_at_all() -> None:
    undeclared = make_entry(tool="kv.put").manifest

    assert capture(undeclared, BeforeAnswer(value=1)).read is BeforeRead.NOT_MADE
    assert after_digest(lambda data: "digest", undeclared, BeforeAnswer(value=1)) is None


def test_capture_serves_tools_that_need_no_undo() -> None:
    read_only_use = make_entry(tool="kv.touch", before={"tool": "kv.get"}).manifest

    assert capture(read_only_use, BeforeAnswer(value=1)).failure is None


def digest(answer: BeforeAnswer) -> str | None:
    return after_digest(lambda data: hashlib.sha256(data).hexdigest(), manifest(**with_rule), answer)


def test_after_digest_looks_at_named_values_only() -> None:
    first = digest(BeforeAnswer(value={"exists": True, "value": {"a": 1, "b": 2}, "read_at": 1}))
    second = digest(BeforeAnswer(value={"read_at": 2, "value": {"b": 2, "a": 1}, "exists": True}))

    assert first is not None
    assert first == second


def test_after_digest_tells_states_apart() -> None:
    answers = [
        BeforeAnswer(value={"exists": True, "value": 1}),
        BeforeAnswer(value={"exists": True, "value": 2**60}),
        BeforeAnswer(value={"exists": True, "value": 2**60 + 1}),
        BeforeAnswer(value={"exists": True, "value": None}),
        BeforeAnswer(value={"exists": True}),
        BeforeAnswer(value={"exists": False}),
    ]

    assert len({digest(answer) for answer in answers}) == len(answers)


def test_after_digest_of_a_failed_read_is_unknown() -> None:
    assert digest(BeforeAnswer(error="boom")) is None
