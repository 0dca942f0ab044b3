"""What a caller learns about the effect of its call: class, key, undo, fallback, deadline, look-up."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ledger.core.handles import HandleLost
from ledger.core.statuses import StepState
from rollback.core.effect_report import IDEMPOTENT, IRREVERSIBLE, effect_report
from rollback.core.steps import PlanStep
from tests.rollback.factories import NOW, digest, make_handle, make_manifest, make_step, undoable

NOTHING = {"undo": None, "deadline_ms": None, "lookup": None}
CANCEL = {"kind": "inverse", "operation": "shop.cancel", "tool": "shop.cancel", "arguments": {"id": "o1"}}
LOOKUP = {"tool": "shop.find", "by": "idempotency_key", "arguments": {"key": "$idempotency_key"}}
BY_ID = {"tool": "shop.find", "by": "id", "arguments": {"id": "$result.id"}}


def report(step: PlanStep) -> dict[str, Any]:
    return effect_report(step, keyed_digest=digest)


def epoch_ms(delta: timedelta) -> int:
    return int((NOW + delta).timestamp() * 1000)


def test_success_names_the_call_that_undoes_it() -> None:
    found = report(make_step(manifest=undoable(), idempotency_key="k1"))

    assert found == {
        "class": "reversible",
        "operation": "shop.order",
        "idempotency_key": "k1",
        "undo": CANCEL,
        "deadline_ms": None,
        "lookup": None,
    }


def test_compensable_call_names_amends() -> None:
    assert report(make_step(manifest=undoable(effect="compensable")))["undo"] == {**CANCEL, "kind": "compensate"}


@pytest.mark.parametrize(
    ("effect", "word", "why"),
    [
        ("read_only", "read", None),
        ("idempotent", "irreversible", IDEMPOTENT),
        ("irreversible", "irreversible", IRREVERSIBLE),
    ],
)
def test_call_without_an_undo_says_why(effect: str, word: str, why: str | None) -> None:
    found = report(make_step(manifest=make_manifest(effect=effect)))

    assert found.items() >= {"class": word, **NOTHING}.items()
    assert found.get("undo_unavailable") == why


def test_call_that_nobody_described_is_taken_for_the_worst() -> None:
    found = report(make_step(manifest=None))

    assert (found["class"], found["undo"]) == ("irreversible", None)
    assert "no manifest" in found["undo_unavailable"]


@pytest.mark.parametrize("state", [StepState.FAILED, StepState.UNCERTAIN])
def test_other_outcomes_have_class_key_and_look_up_only(state: StepState) -> None:
    found = report(
        make_step(manifest=undoable(lookup=LOOKUP, key_carrier={"meta": True}), state=state, idempotency_key="k1")
    )

    assert found == {
        "class": "reversible",
        "operation": "shop.order",
        "idempotency_key": "k1",
        "undo": None,
        "deadline_ms": None,
        "lookup": {
            "operation": "shop.find",
            "tool": "shop.find",
            "by": "idempotency_key",
            "arguments": {"key": "k1"},
        },
    }


def test_look_up_that_cannot_be_built_is_none() -> None:
    by_key = make_step(manifest=undoable(lookup=LOOKUP, key_carrier={"meta": True}))
    by_id = make_step(manifest=undoable(lookup=BY_ID), handle=make_handle(values={}))
    lost = make_step(manifest=undoable(lookup=BY_ID), handle=HandleLost("purged"))

    assert [report(step)["lookup"] for step in (by_key, by_id, lost)] == [None, None, None]


def test_look_up_by_id_reads_the_result() -> None:
    assert report(make_step(manifest=undoable(lookup=BY_ID)))["lookup"]["arguments"] == {"id": "o1"}


def test_deadline_is_told_in_epoch_milliseconds() -> None:
    found = report(make_step(manifest=undoable(undo={"deadline": {"within_ms": "1h"}})))

    assert found["deadline_ms"] == epoch_ms(timedelta(hours=1))


def test_fallback_stands_beside_the_undo() -> None:
    fallback = {"tool": "shop.refund", "argument_map": {"id": "$result.id"}, "deadline": {"within_ms": "2h"}}

    found = report(make_step(manifest=undoable(undo={"fallback": fallback})))

    assert found["undo"] == CANCEL
    assert found["compensate"] == {
        "kind": "compensate",
        "operation": "shop.refund",
        "tool": "shop.refund",
        "arguments": {"id": "o1"},
        "deadline_ms": epoch_ms(timedelta(hours=2)),
    }


def test_undo_that_cannot_be_built_says_what_is_missing() -> None:
    found = report(make_step(manifest=undoable(), handle=make_handle(values={})))

    assert found["undo"] is None
    assert "$result.id" in found["undo_unavailable"]


def test_unrecoverable_step_says_its_reason() -> None:
    found = report(make_step(manifest=undoable(), unrecoverable="nothing came back"))

    assert (found["undo"], found["undo_unavailable"]) == (None, "nothing came back")


def test_lost_handle_leaves_no_undo() -> None:
    found = report(make_step(manifest=undoable(), handle=HandleLost("purged")))

    assert (found["undo"], found["undo_unavailable"]) == (None, "the undo handle is gone")


def test_redacted_values_are_not_told() -> None:
    manifest = undoable(audit={"redaction": ["$result.id"]}, lookup=BY_ID)

    found = report(make_step(manifest=manifest))

    assert (found["undo"]["arguments"], found["lookup"]["arguments"]) == ({"id": "[redacted]"}, {"id": "[redacted]"})
