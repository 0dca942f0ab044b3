"""What a read of the state before shows (D35)."""

import hashlib
from typing import Any

import pytest

from approvals.core.before import BeforeAnswer, after_digest, before_digest, capture
from ledger.core.handles import BeforeRead, Handle
from reversi_sdk.model import Manifest
from reversi_sdk.references import MISSING as MISSING_VALUE
from reversi_sdk.references import Finder, Found, Missing, Reference
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
    "unusable": (
        {"unusable_when": {"path": "value", "glob": "*\ufffd*"}},
        BeforeAnswer(value={"value": "a\ufffdb"}),
        MISSING,
        "cannot capture the state before: `value` cannot be restored from: it matches '*\ufffd*'",
    ),
    "usable": (
        {"unusable_when": {"path": "value", "glob": "*\ufffd*"}},
        BeforeAnswer(value={"value": "a"}),
        FOUND,
        None,
    ),
    "usable because it is no text": (
        {"unusable_when": {"path": "value", "glob": "*"}},
        BeforeAnswer(value={"value": 1}),
        FOUND,
        None,
    ),
    "absent is not unusable": (
        {**with_rule, "unusable_when": {"path": "value", "glob": "*"}},
        BeforeAnswer(value={"exists": False, "value": "x"}),
        ABSENT,
        None,
    ),
    "nothing to narrow": (
        {"among": {"value": "$args.items"}},
        BeforeAnswer(value={"value": 1}),
        MISSING,
        "cannot capture the state before: `value` of the answer is no list",
    ),
    "nothing to narrow by": (
        {"among": {"value": "$args.others"}},
        BeforeAnswer(value={"value": [1]}),
        MISSING,
        "cannot capture the state before: argument value: $args.others names nothing",
    ),
    "absent without an undo for it": ({"absent_when": PATH_RULE}, BeforeAnswer(value={"exists": False}), MISSING, GAP),
}


@pytest.mark.parametrize("case", CASES)
def test_capture(case: str) -> None:
    fields, answer, read, failure = CASES[case]

    captured = capture(manifest(**fields), answer, {"items": [2]})

    assert (captured.read, captured.failure) == (read, failure)


def test_capture_of_an_undeclared_read_is_none_at_all() -> None:
    undeclared = make_entry(tool="kv.put").manifest

    assert capture(undeclared, BeforeAnswer(value=1), {}).read is BeforeRead.NOT_MADE
    assert after_digest(lambda data: "digest", undeclared, BeforeAnswer(value=1), nothing) is None


def test_capture_serves_tools_that_need_no_undo() -> None:
    read_only_use = make_entry(tool="kv.touch", before={"tool": "kv.get"}).manifest

    assert capture(read_only_use, BeforeAnswer(value=1), {}).failure is None


def nothing(reference: Reference) -> Missing:
    return MISSING_VALUE


def keyed(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def digest(answer: BeforeAnswer, *, find: Finder = nothing, **fields: Any) -> str | None:
    return after_digest(keyed, manifest(**(fields or with_rule)), answer, find)


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


def test_capture_keeps_of_a_list_only_what_the_call_names() -> None:
    captured = capture(
        manifest(among={"value": "$args.items"}), BeforeAnswer(value={"value": [1, 2, 3]}), {"items": [2]}
    )

    assert captured.value == {"value": [2]}


def test_after_digest_sees_of_a_list_only_what_the_call_named() -> None:
    def find(reference: Reference) -> Found:
        return Found([2])

    fields: dict[str, Any] = {"among": {"value": "$args.items"}}
    seen = [digest(BeforeAnswer(value={"value": value}), find=find, **fields) for value in ([1, 2], [2, 3], [1, 3])]

    assert seen[0] == seen[1] != seen[2]


def test_after_digest_recognises_what_nothing_could_be_restored_from() -> None:
    fields: dict[str, Any] = {"unusable_when": {"path": "value", "glob": "*"}}
    one, same, other = (digest(BeforeAnswer(value={"value": text}), **fields) for text in "aab")

    assert one is not None
    assert one == same != other


def test_digest_of_a_manifest_without_flags_stays_what_stores_hold() -> None:
    expected = keyed(b'{"found":true,"values":{"$before.value":[2,1]}}')

    assert digest(BeforeAnswer(value={"exists": True, "value": [2, 1]})) == expected


POSITIONS = {"tool": "kv.put", "self_inverse": True, "argument_map": {"names": ["$before.l[0].n?", "$before.l[1].n?"]}}
WHOLE = {"verification": {"tool": "kv.get", "expect": {"l": "$before.l"}}}


def unordered_manifest(**undo: Any) -> Manifest:
    before = {"tool": "kv.get", "unordered": True}
    return make_entry(tool="kv.put", effect="reversible", compensation={**POSITIONS, **undo}, before=before).manifest


@pytest.mark.parametrize("undo", [{}, WHOLE], ids=["by position", "as a whole too"])
def test_unordered_digest_ignores_where_an_item_stands(undo: dict[str, Any]) -> None:
    ordered, swapped, other = (
        after_digest(keyed, unordered_manifest(**undo), BeforeAnswer(value={"l": [{"n": n} for n in names]}), nothing)
        for names in ("ab", "ba", "ac")
    )

    assert ordered == swapped != other


def test_unordered_digest_keeps_what_belongs_together() -> None:
    mapped = {"pairs": ["$before.l[0].n?", "$before.l[0].v?", "$before.l[1].n?", "$before.l[1].v?"]}
    paired = unordered_manifest(argument_map=mapped)
    states = ([("a", 1), ("b", 2)], [("b", 2), ("a", 1)], [("a", 2), ("b", 1)])
    one, same, crossed = (
        after_digest(keyed, paired, BeforeAnswer(value={"l": [{"n": n, "v": v} for n, v in state]}), nothing)
        for state in states
    )

    assert one == same != crossed


def test_unordered_digest_counts_repeated_items() -> None:
    once, twice = (
        after_digest(keyed, unordered_manifest(**WHOLE), BeforeAnswer(value={"l": [{"n": "a"}] * count}), nothing)
        for count in (1, 2)
    )

    assert once != twice


def test_before_digest_is_the_digest_of_the_same_state_seen_later_in_another_order() -> None:
    declared = unordered_manifest(**WHOLE)
    items = [{"n": "a"}, {"n": "b"}]
    handle = Handle(values={"$before.l.0.n": "a", "$before.l.1.n": "b", "$before.l": items}, before=BeforeRead.FOUND)

    later = after_digest(keyed, declared, BeforeAnswer(value={"l": items[::-1]}), nothing)

    assert before_digest(keyed, declared, handle) == later
