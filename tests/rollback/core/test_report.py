"""Where a report puts each step as it stands (D23)."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.core.statuses import ReadBack, StepState
from rollback.core.report import Refusal, Refused, Report
from rollback.core.selection import Selection
from rollback.core.steps import AttemptOutcome, Role
from tests.rollback.factories import make_attempt, make_manifest, make_step, report_of, undoable

ORDER = undoable(effect="compensable", undo={"residue": ["a line on the statement"]})
TAG = make_manifest(tool="shop.tag")
MAIL = make_manifest(tool="shop.mail", effect="irreversible")
UNDONE = make_attempt(outcome=AttemptOutcome.SUCCEEDED)
FAILED: dict[str, Any] = {
    "state": StepState.COMPENSATION_FAILED,
    "attempts": [make_attempt(outcome=AttemptOutcome.FAILED)],
}


@pytest.mark.parametrize(
    ("manifest", "fields", "bucket"),
    [
        (ORDER, {"state": StepState.COMPENSATED, "attempts": [UNDONE]}, "compensated"),
        (ORDER, {"state": StepState.FAILED}, "skipped"),
        (TAG, {}, "skipped"),
        (MAIL, {}, "unrecoverable"),
        (ORDER, {"state": StepState.UNCERTAIN}, "unresolved"),
        (ORDER, {"is_disputed": True}, "unresolved"),
        (ORDER, {"state": StepState.COMPENSATING, "attempts": [make_attempt()]}, "unresolved"),
        (ORDER, {}, "unresolved"),
        (None, {}, "unmanifested"),
    ],
    ids=["undone", "failed call", "idempotent", "mail", "uncertain", "disputed", "under way", "settled during", "none"],
)
def test_a_step_is_put_where_it_stands(manifest: Any, fields: Any, bucket: str) -> None:
    data = report_of(make_step(manifest=manifest, **fields)).to_json()

    assert [
        name for name in ("compensated", "skipped", "unrecoverable", "unresolved", "unmanifested") if data[name]
    ] == [bucket]
    assert data[bucket] == [0]
    assert data["complete"] is (bucket in ("compensated", "skipped"))


def test_a_step_settled_meanwhile_says_so() -> None:
    assert report_of(make_step(manifest=ORDER)).entries[0].reason == "settled during the rollback"


def test_a_failed_undo_carries_its_error() -> None:
    report = report_of(make_step(manifest=ORDER, error="card expired", **FAILED))

    assert report.to_json()["failed"] == [{"step": 0, "error": "card expired"}]


def test_an_undo_in_doubt_is_failed() -> None:
    step = make_step(
        manifest=ORDER,
        state=StepState.COMPENSATION_FAILED,
        attempts=[make_attempt()],
        is_undo_outcome_unknown=True,
        error="outcome unknown: the answer was lost",
    )

    assert report_of(step).to_json()["failed"] == [{"step": 0, "error": "outcome unknown: the answer was lost"}]


@pytest.mark.parametrize(
    ("kind", "bucket"),
    [
        (Refusal.NOBODY_RUNS_IT, "failed"),
        (Refusal.CHANGED_SINCE, "failed"),
        (Refusal.PLANNED_OTHERWISE, "failed"),
        (Refusal.AWAITING_APPROVAL, "awaiting_approval"),
    ],
)
def test_a_refusal_is_told_under_its_bucket(kind: Refusal, bucket: str) -> None:
    data = report_of(make_step(manifest=ORDER), refused={0: Refused(kind, "because")}).to_json()

    assert data[bucket] == ([{"step": 0, "error": "because"}] if bucket == "failed" else [0])
    assert data["complete"] is False


def test_a_refused_step_that_was_undone_meanwhile_is_undone() -> None:
    step = make_step(manifest=ORDER, state=StepState.COMPENSATED, is_by_hand=True)

    data = report_of(step, refused={0: Refused(Refusal.NOBODY_RUNS_IT, "because")}).to_json()

    assert (data["compensated"], data["by_hand"], data["failed"]) == ([0], [0], [])


def test_what_a_standing_step_was_built_on_is_deferred() -> None:
    steps = [make_step(manifest=ORDER), make_step(number=1, manifest=ORDER, depends_on=(0,), **FAILED)]

    data = report_of(*steps).to_json()

    assert data["deferred"] == [{"step": 0, "blocked_by": [1]}]
    assert [entry["step"] for entry in data["failed"]] == [1]


@pytest.mark.parametrize(
    ("read_back", "unverified", "unchecked"),
    [(ReadBack.UNVERIFIED, [0], []), (ReadBack.NOT_DECLARED, [], [0]), (ReadBack.VERIFIED, [], [])],
)
def test_an_undone_step_says_how_it_was_checked(read_back: ReadBack, unverified: Any, unchecked: Any) -> None:
    step = make_step(manifest=ORDER, state=StepState.COMPENSATED, read_back=read_back, attempts=[UNDONE])

    data = report_of(step).to_json()

    assert (data["unverified"], data["unchecked"], data["complete"]) == (unverified, unchecked, not unverified)


@pytest.mark.parametrize(("role", "residue"), [(Role.PRIMARY, "a line"), (Role.FALLBACK, "a credit note")])
def test_residue_is_that_of_the_undo_that_was_used(role: Role, residue: str) -> None:
    fallback = {"tool": "shop.credit", "argument_map": {}, "residue": ["a credit note"]}
    manifest = undoable(effect="compensable", undo={"residue": ["a line"], "fallback": fallback})
    sent = make_attempt(outcome=AttemptOutcome.SUCCEEDED, role=role)

    data = report_of(make_step(manifest=manifest, state=StepState.COMPENSATED, attempts=[sent])).to_json()

    assert data["residue"] == [{"step": 0, "residue": [residue]}]
    assert data["fallback"] == ([0] if role is Role.FALLBACK else [])


def test_effects_that_stay_are_listed() -> None:
    data = report_of(make_step(manifest=TAG), make_step(number=1, manifest=TAG, state=StepState.FAILED)).to_json()

    assert (data["leaves_standing"], data["complete"]) == ([0], True)


def test_a_selection_is_reported_alone_with_what_must_by_then_go_first() -> None:
    steps = [
        make_step(manifest=ORDER, state=StepState.COMPENSATED, attempts=[UNDONE]),
        make_step(number=1, manifest=MAIL),
        make_step(number=2, manifest=ORDER),
        make_step(number=3, manifest=ORDER, depends_on=(2,)),
    ]

    done = report_of(*steps, selection=Selection(steps=(0,)))
    left = report_of(*steps, selection=Selection(steps=(2,)))

    assert [entry.step for entry in done.entries] == [0]
    assert done.is_complete
    assert [entry.step for entry in left.entries] == [3, 2]
    assert left.to_json()["selection"]["added"] == [3]


def test_a_report_survives_json() -> None:
    steps = [
        make_step(manifest=ORDER),
        make_step(number=1, manifest=ORDER, depends_on=(0,), error="no", **FAILED),
        make_step(number=2, manifest=TAG),
    ]
    report = report_of(*steps, selection=Selection(steps=(0, 1, 2)))

    assert Report.from_json(report.to_json()) == report
