"""The gate as a table: what speaks against a call, in which words and which order (D12)."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from approvals.core.gate import Admission, Situation, admit, grants
from approvals.core.violations import Code
from ledger.core.statuses import Mode, RunState
from ledger.core.values import RunRecord
from tests.manifests_registry.factories import make_entry

NOW = datetime(2026, 3, 1, tzinfo=UTC)
RUN = RunRecord(
    id="run_1",
    principal="agent-a",
    actor="",
    tenant="",
    environment="",
    mode=Mode.ENFORCE,
    scope=("shop:*",),
    reason="",
    labels={},
    state=RunState.OPEN,
    is_rolling_back=False,
    fence=0,
    next_step=0,
    opened_at=NOW,
    closed_at=None,
    active_at=NOW,
)


def situation(
    manifest: Mapping[str, Any] | None = None, run: Mapping[str, Any] | None = None, **fields: Any
) -> Situation:
    entry = None if manifest is None else make_entry(**{"tool": "shop.order", **manifest})
    return Situation(
        run=replace(RUN, **(run or {})),
        tool="shop.order",
        manifest=None if entry is None else entry.manifest,
        **fields,
    )


def told(admission: Admission) -> list[tuple[str, str]]:
    return [(violation.code.value, violation.message) for violation in admission.violations]


VIOLATIONS: dict[str, tuple[Situation, str, str]] = {
    "rolling back": (
        situation({}, {"is_rolling_back": True}),
        "run_rolling_back",
        "the run is being rolled back",
    ),
    "halted": (situation({}, halts=("too many charges",)), "halted", "kill switch: too many charges"),
    "no manifest": (situation(), "no_manifest", "no manifest for shop.order"),
    "draft": (situation({"status": "draft"}), "draft_manifest", "the manifest for shop.order is a draft"),
    "compensation only": (
        situation({"compensation_only": True}),
        "compensation_only",
        "shop.order is only for undoing",
    ),
    "permission": (
        situation({"permission": "bank:write"}),
        "permission",
        "permission bank:write is not in the run's scope",
    ),
    "requires": (situation({"requires": ["shop.login"]}), "requires", "requires shop.login to have succeeded"),
    "key unavailable": (
        situation({}, key_problem="the idempotency key cannot be built: args.id names nothing"),
        "idempotency_key_unavailable",
        "the idempotency key cannot be built: args.id names nothing",
    ),
    "duplicate here": (situation({}, holder=("run_1", 3)), "duplicate", "duplicate of step 3"),
    "duplicate elsewhere": (situation({}, holder=("run_9", 3)), "duplicate", "duplicate of step 3 of run run_9"),
}


@pytest.mark.parametrize("case", VIOLATIONS)
def test_admit_blocks(case: str) -> None:
    facts, code, message = VIOLATIONS[case]

    admission = admit(facts)

    assert told(admission) == [(code, message)]
    assert admission.blocking == admission.violations


@pytest.mark.parametrize("case", VIOLATIONS)
def test_admit_only_records_in_observe_mode_unless_the_way_back_or_a_halt_is_at_stake(case: str) -> None:
    facts, code, _ = VIOLATIONS[case]

    admission = admit(replace(facts, run=replace(facts.run, mode=Mode.OBSERVE)))

    assert [violation.code for violation in admission.violations] == [code]
    assert bool(admission.blocking) is (code in ("run_rolling_back", "halted"))


def test_admit_collects_all_violations_in_order() -> None:
    manifest = {
        "compensation_only": True,
        "permission": "bank:write",
        "requires": ["shop.login", "shop.pay"],
        "approval": "always",
    }
    facts = situation(
        manifest,
        {"is_rolling_back": True},
        halts=("one", "two"),
        key_problem="no key",
        holder=("run_1", 0),
        successes={"shop.pay": 2},
    )

    assert [code for code, _ in told(admit(facts))] == [
        "run_rolling_back",
        "halted",
        "halted",
        "compensation_only",
        "permission",
        "requires",
        "idempotency_key_unavailable",
        "duplicate",
    ]


def test_codes_are_listed_in_the_order_of_the_gate() -> None:
    order = [code.value for code in Code]

    assert order[:4] == ["run_rolling_back", "halted", "no_manifest", "draft_manifest"]
    assert order[4:] == [
        "compensation_only",
        "permission",
        "requires",
        "idempotency_key_unavailable",
        "duplicate",
        "approval_denied",
        "before_failed",
    ]


def test_admit_passes_what_nothing_speaks_against() -> None:
    facts = situation({"requires": ["shop.login"]}, successes={"shop.login": 4})

    admission = admit(facts)

    assert (admission.violations, admission.blocking, admission.notes) == ((), (), ())
    assert admission.requires_steps == (4,)


def test_admit_asks_no_approval_of_a_call_that_is_refused_anyway() -> None:
    facts = situation({"approval": "always"}, halts=("stop",))

    assert not admit(facts).needs_approval


@pytest.mark.parametrize(
    ("manifest", "mode", "needs"),
    [
        ({"approval": "always"}, Mode.ENFORCE, True),
        ({"effect": "irreversible"}, Mode.ENFORCE, True),
        ({}, Mode.ENFORCE, False),
        ({"approval": "always"}, Mode.OBSERVE, False),
    ],
)
def test_admit_asks_for_approval_in_enforce_mode(manifest: dict[str, object], mode: Mode, needs: bool) -> None:
    admission = admit(situation(manifest, {"mode": mode}))

    assert (admission.needs_approval, admission.violations) == (needs, ())


NOTES = {
    "approved": ({}, ()),
    "deprecated": ({"status": "deprecated"}, ("manifest deprecated",)),
    "replaced": (
        {"status": "deprecated", "replaced_by": "shop.order2"},
        ("manifest deprecated; use shop.order2",),
    ),
}


@pytest.mark.parametrize("case", NOTES)
def test_admit_notes_a_deprecated_manifest(case: str) -> None:
    manifest, notes = NOTES[case]

    admission = admit(situation(manifest))

    assert (admission.notes, admission.violations) == (notes, ())


@pytest.mark.parametrize(
    ("manifest", "notes"),
    [
        ({"approval": "always"}, ("approval required; not asked in observe mode",)),
        ({"approval": "always", "status": "draft"}, ()),
        ({}, ()),
    ],
)
def test_admit_notes_in_observe_mode_that_an_approval_was_not_asked(
    manifest: dict[str, object], notes: tuple[str, ...]
) -> None:
    admission = admit(situation(manifest, {"mode": Mode.OBSERVE}))

    assert (admission.notes, admission.blocking) == (notes, ())


GRANTS = {
    "exact": (("shop:read",), True),
    "star": (("shop:*",), True),
    "everything": (("*",), True),
    "star in the middle": (("s*:read",), True),
    "nothing": ((), False),
    "other": (("shop:write",), False),
    "prefix without star": (("shop:",), False),
    "question mark is no wildcard": (("shop:rea?",), False),
    "brackets are no wildcard": (("shop:[r]ead",), False),
    "dot is no wildcard": (("shop.read",), False),
}


@pytest.mark.parametrize("case", GRANTS)
def test_grants(case: str) -> None:
    scope, is_granted = GRANTS[case]

    assert grants(scope, "shop:read") is is_granted
