"""The rule for an undo whose outcome is unknown, as a table (D23)."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.core.statuses import StepState
from reversi_sdk.model import Manifest
from rollback.core.doubt import Course, Doubt, course_of, doubt_about, is_harmless_to_repeat, may_send_after_mismatch
from rollback.core.steps import AttemptFact, AttemptOutcome
from tests.rollback.factories import make_attempt, make_manifest, undoable

OK, NO, LOST = AttemptOutcome.SUCCEEDED, AttemptOutcome.FAILED, AttemptOutcome.UNKNOWN
NOT_RUN = AttemptOutcome.NOT_RUN
BEGUN, FAILED = StepState.COMPENSATING, StepState.COMPENSATION_FAILED


def sends(*outcomes: AttemptOutcome | None, is_keyed: bool = False) -> list[AttemptFact]:
    return [make_attempt(outcome=outcome, is_keyed=is_keyed) for outcome in outcomes]


@pytest.mark.parametrize(
    ("state", "attempts", "kind", "count"),
    [
        (StepState.SUCCEEDED, [], Doubt.NONE, 0),
        (StepState.SUCCEEDED, sends(LOST), Doubt.NONE, 0),
        (BEGUN, sends(None), Doubt.LOST, 1),
        (BEGUN, sends(LOST), Doubt.LOST, 1),
        (BEGUN, sends(OK), Doubt.ANSWERED, 1),
        (BEGUN, sends(NO), Doubt.NONE, 0),
        (BEGUN, sends(NO, None), Doubt.LOST, 1),
        (BEGUN, sends(LOST, None), Doubt.LOST, 2),
        (BEGUN, sends(LOST, OK), Doubt.ANSWERED, 2),
        (BEGUN, [], Doubt.LOST, 0),
        (FAILED, sends(NO), Doubt.NONE, 0),
        (FAILED, sends(LOST), Doubt.LOST, 1),
        (FAILED, sends(OK), Doubt.UNSEEN, 1),
        (FAILED, sends(LOST, NO), Doubt.LOST, 2),
        (FAILED, sends(LOST, NO, is_keyed=True), Doubt.NONE, 0),
        (FAILED, sends(NO, NO, LOST), Doubt.LOST, 1),
        (BEGUN, sends(NOT_RUN), Doubt.NONE, 0),
        (FAILED, sends(NOT_RUN, is_keyed=True), Doubt.NONE, 0),
        (FAILED, sends(LOST, NOT_RUN, is_keyed=True), Doubt.LOST, 1),
        (FAILED, sends(LOST, NOT_RUN), Doubt.LOST, 1),
        (FAILED, sends(OK, NOT_RUN, is_keyed=True), Doubt.UNSEEN, 1),
        (FAILED, [make_attempt(is_settled=True)], Doubt.NONE, 0),
    ],
)
def test_doubt_about_the_sends_so_far(state: StepState, attempts: Any, kind: Doubt, count: int) -> None:
    doubt = doubt_about(state, False, attempts)

    assert (doubt.kind, doubt.sends) == (kind, count)


def test_doubt_without_a_known_send_is_the_deepest() -> None:
    doubt = doubt_about(FAILED, True, [])

    assert (doubt.kind, doubt.pair, doubt.was_keyed) == (Doubt.LOST, None, False)


@pytest.mark.parametrize(
    ("undo", "tool", "is_keyed", "expected"),
    [
        ({}, None, False, False),
        ({}, None, True, True),
        ({}, make_manifest(tool="shop.cancel"), False, True),
        ({}, make_manifest(tool="shop.cancel", effect="irreversible"), False, False),
        ({"tool": "shop.order", "self_inverse": True}, make_manifest(tool="shop.order"), True, False),
        ({"tool": "shop.order", "self_inverse": True, "repeatable": True}, None, False, True),
    ],
    ids=["nothing", "keyed", "idempotent", "irreversible", "self inverse", "repeatable self inverse"],
)
def test_what_is_harmless_to_repeat(undo: Any, tool: Manifest | None, is_keyed: bool, expected: bool) -> None:
    found = undoable(undo=undo).undo

    assert found is not None
    assert is_harmless_to_repeat(found, tool, is_keyed=is_keyed) is expected


@pytest.mark.parametrize(
    ("state", "outcome", "is_repeatable", "can_read", "course"),
    [
        (FAILED, NO, False, False, Course.SEND),
        (FAILED, NO, True, True, Course.SEND),
        (BEGUN, OK, False, False, Course.CHECK),
        (BEGUN, OK, True, True, Course.CHECK),
        (BEGUN, None, True, False, Course.SEND),
        (BEGUN, None, True, True, Course.SEND),
        (BEGUN, None, False, True, Course.READ_FIRST),
        (BEGUN, None, False, False, Course.STOP),
        (FAILED, LOST, True, False, Course.SEND),
        (FAILED, LOST, False, True, Course.READ_FIRST),
        (FAILED, LOST, False, False, Course.STOP),
        (FAILED, OK, True, True, Course.READ_FIRST),
        (FAILED, OK, False, True, Course.READ_FIRST),
        (FAILED, OK, True, False, Course.SEND),
        (FAILED, OK, False, False, Course.STOP),
    ],
)
def test_course_of_an_undo(
    state: StepState, outcome: AttemptOutcome | None, is_repeatable: bool, can_read: bool, course: Course
) -> None:
    doubt = doubt_about(state, False, sends(outcome))

    assert course_of(doubt, is_repeatable=is_repeatable, can_read=can_read) is course


@pytest.mark.parametrize(
    ("attempts", "is_repeatable", "may"),
    [(sends(LOST), False, True), (sends(LOST, LOST), False, False), (sends(LOST, LOST), True, True)],
    ids=["once", "not twice", "harmless"],
)
def test_a_mismatch_is_repeated_once(attempts: Any, is_repeatable: bool, may: bool) -> None:
    doubt = doubt_about(FAILED, True, attempts)

    assert may_send_after_mismatch(doubt, is_repeatable=is_repeatable) is may
