"""Plans and reports as they are read aloud."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from ledger.core.statuses import ReadBack, StepState
from rollback.core.report import Refusal, Refused
from rollback.core.steps import AttemptOutcome
from rollback.core.text import plan_lines, report_lines
from tests.rollback.factories import (
    NOW,
    make_attempt,
    make_manifest,
    make_step,
    plan_of,
    report_of,
    undoable,
)

CHARGE = undoable(
    tool="stripe.create_charge",
    effect="compensable",
    undo={"tool": "stripe.refund", "residue": ["the charge still appears on the customer's statement"]},
)
MAIL = make_manifest(tool="mail.send", effect="irreversible")
TAG = make_manifest(tool="shop.tag")
UNDONE = make_attempt(outcome=AttemptOutcome.SUCCEEDED)


def test_plan_lines_of_a_call_without_an_outcome() -> None:
    assert plan_lines(plan_of(make_step(manifest=CHARGE, state=StepState.UNCERTAIN))) == (
        "  step 0  stripe.create_charge  unresolved  outcome unknown: reconcile with the downstream system",
        "  NOT fully reversible: see above",
    )


def test_plan_lines_of_an_undo() -> None:
    assert plan_lines(plan_of(make_step(manifest=CHARGE, summary="charge 700 for order o1"))) == (
        "  step 0  stripe.create_charge  compensate  -> stripe.refund",
        "          charge 700 for order o1",
        "          stays behind: the charge still appears on the customer's statement",
        "          nothing to read back",
        "  fully reversible",
    )


def test_plan_lines_of_every_kind() -> None:
    steps = [
        make_step(manifest=CHARGE),
        make_step(number=1, manifest=TAG),
        make_step(number=2, manifest=None, tool="other.tool"),
        make_step(number=3, manifest=MAIL, depends_on=(0,)),
    ]

    assert plan_lines(plan_of(*steps)) == (
        "  step 3  mail.send  unrecoverable  declared irreversible: it cannot be undone",
        "  step 2  other.tool  unmanifested  no manifest: what the call did is unknown",
        "  step 1  shop.tag  skip  declared idempotent: its effect stays",
        "  step 0  stripe.create_charge  defer  waits until step 3 is undone",
        "  left standing, declared idempotent: 1",
        "  NOT fully reversible: see above",
    )


def test_plan_lines_say_what_to_know_before_agreeing() -> None:
    manifest = undoable(
        undo={
            "requires_approval": True,
            "deadline": {"within_ms": "1h"},
            "verification": {"tool": "shop.get", "arguments": {}, "expect": {"state": "gone"}},
        }
    )

    assert plan_lines(plan_of(make_step(manifest=manifest), can_run=lambda tool, upstream: False)) == (
        "  step 0  shop.order  compensate  -> shop.cancel, but nothing can run shop.cancel",
        "          undo window closes at 2026-03-01T13:00:00Z",
        "          needs an approval",
        "          read back before it counts as done",
        "  NOT fully reversible: see above",
    )


def test_plan_lines_name_a_fallback() -> None:
    fallback = {"tool": "shop.credit", "argument_map": {}}
    manifest = undoable(undo={"deadline": {"within_ms": 1}, "fallback": fallback})

    lines = plan_lines(plan_of(make_step(manifest=manifest), now=NOW + timedelta(hours=1)))

    assert lines[:2] == (
        "  step 0  shop.order  compensate  -> shop.credit",
        "          the step's own undo no longer serves: this is its fallback",
    )


def test_plan_lines_of_nothing() -> None:
    assert plan_lines(plan_of()) == ("  no steps", "  fully reversible")


def test_plan_lines_say_what_went_before() -> None:
    sent = make_attempt(outcome=AttemptOutcome.FAILED)
    step = make_step(manifest=CHARGE, state=StepState.COMPENSATION_FAILED, attempts=[sent])

    assert plan_lines(plan_of(step))[1] == "          failed before: tried again"


def test_report_lines_of_nothing() -> None:
    assert report_lines(report_of()) == ("  no steps", "rollback COMPLETE")


def test_report_lines_of_a_complete_rollback() -> None:
    undone: dict[str, Any] = {"state": StepState.COMPENSATED, "attempts": [UNDONE]}
    steps = [
        make_step(manifest=CHARGE, **undone),
        make_step(number=1, manifest=TAG),
        make_step(number=2, manifest=undoable(), read_back=ReadBack.VERIFIED, **undone),
        make_step(number=3, manifest=MAIL, state=StepState.COMPENSATED, is_by_hand=True),
    ]

    assert report_lines(report_of(*steps)) == (
        "  step 3  mail.send  undone  by hand, no read-back declared",
        "  step 2  shop.order  undone  read back and confirmed",
        "  step 1  shop.tag  nothing to undo  declared idempotent: its effect stays",
        "  step 0  stripe.create_charge  undone  no read-back declared",
        "          stays behind: the charge still appears on the customer's statement",
        "left standing, declared idempotent: 1",
        "undone, nothing to read back: 0, 3",
        "rollback COMPLETE",
    )


def test_report_lines_of_trouble() -> None:
    steps = [
        make_step(manifest=CHARGE),
        make_step(number=1, manifest=CHARGE, depends_on=(0,)),
        make_step(number=2, manifest=undoable(), state=StepState.COMPENSATED, read_back=ReadBack.UNVERIFIED),
    ]
    refused = {1: Refused(Refusal.NOBODY_RUNS_IT, "nothing can run stripe.refund")}

    assert report_lines(report_of(*steps, refused=refused)) == (
        "  step 2  shop.order  undone  not read back yet",
        "  step 1  stripe.create_charge  failed  nothing can run stripe.refund",
        "  step 0  stripe.create_charge  deferred  step 1 stands on it",
        "undone but not verified (declared read-back not run; pass --reader-cmd): 2",
        "rollback INCOMPLETE",
    )
