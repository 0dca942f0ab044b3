"""What a plan says about each step: state, effect, dependency and touched names (D22)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ledger.core.handles import BeforeRead, HandleLost
from ledger.core.statuses import ReadBack, StepState
from rollback.core.plan import Plan
from rollback.core.steps import AttemptOutcome, Role
from tests.rollback.factories import (
    NOW,
    blocked,
    kinds,
    make_attempt,
    make_handle,
    make_manifest,
    make_step,
    plan_of,
    reasons,
    undoable,
    writing,
)

READ = make_manifest(tool="shop.get", effect="read_only")
IDEMPOTENT = make_manifest(tool="shop.tag")
IRREVERSIBLE = make_manifest(tool="shop.mail", effect="irreversible")
ORDER = undoable()
EVERY_STATE = list(StepState)


def only(plan: Plan) -> tuple[str, str | None]:
    return plan.actions[0].kind.value, plan.actions[0].reason


@pytest.mark.parametrize("state", EVERY_STATE)
def test_a_read_is_skipped_whatever_became_of_it(state: StepState) -> None:
    assert only(plan_of(make_step(manifest=READ, state=state))) == ("skip", "reads only")


@pytest.mark.parametrize("manifest", [ORDER, IDEMPOTENT, IRREVERSIBLE, None], ids=["order", "tag", "mail", "none"])
@pytest.mark.parametrize("state", [StepState.INTENDED, StepState.UNCERTAIN])
def test_a_call_without_an_outcome_is_unresolved(manifest: Any, state: StepState) -> None:
    expected = ("unresolved", "outcome unknown: reconcile with the downstream system")

    assert only(plan_of(make_step(manifest=manifest, state=state))) == expected


@pytest.mark.parametrize("state", [StepState.SUCCEEDED, StepState.FAILED])
def test_a_disputed_call_is_unresolved(state: StepState) -> None:
    kind, reason = only(plan_of(make_step(manifest=ORDER, state=state, is_disputed=True)))

    assert (kind, "disputed" in (reason or "")) == ("unresolved", True)


@pytest.mark.parametrize("manifest", [ORDER, IDEMPOTENT, IRREVERSIBLE, None], ids=["order", "tag", "mail", "none"])
def test_a_failed_call_is_skipped(manifest: Any) -> None:
    assert only(plan_of(make_step(manifest=manifest, state=StepState.FAILED))) == ("skip", "the call failed")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "already undone"),
        ({"is_by_hand": True}, "already undone by hand"),
        ({"read_back": ReadBack.UNVERIFIED}, "already undone, not read back yet"),
    ],
    ids=["undone", "by hand", "unverified"],
)
def test_an_undone_step_is_skipped(fields: dict[str, Any], reason: str) -> None:
    step = make_step(manifest=ORDER, state=StepState.COMPENSATED, **fields)

    assert only(plan_of(step)) == ("skip", reason)


def test_an_idempotent_tool_is_skipped_and_said_to_stay() -> None:
    plan = plan_of(make_step(manifest=IDEMPOTENT), make_step(number=1, manifest=READ))

    assert reasons(plan)[0] == "declared idempotent: its effect stays"
    assert plan.leaves_standing == (0,)
    assert plan.fully_reversible


def test_an_irreversible_tool_is_unrecoverable() -> None:
    plan = plan_of(make_step(manifest=IRREVERSIBLE))

    assert only(plan) == ("unrecoverable", "declared irreversible: it cannot be undone")
    assert not plan.fully_reversible


@pytest.mark.parametrize(
    ("manifest", "fields", "word"),
    [
        (None, {}, "no manifest"),
        (None, {"manifest_checksum": "c" * 64}, "missing or was altered"),
        (ORDER, {"is_contract_rejected": True}, "rejected"),
        (undoable(status="draft"), {}, "draft"),
        (make_manifest(tool="shop.get", effect="read_only", status="draft"), {}, "draft"),
    ],
    ids=["none", "document lost", "rejected", "draft", "draft read"],
)
def test_a_call_without_a_manifest_to_believe_is_unmanifested(manifest: Any, fields: Any, word: str) -> None:
    kind, reason = only(plan_of(make_step(manifest=manifest, **fields)))

    assert (kind, word in (reason or "")) == ("unmanifested", True)


@pytest.mark.parametrize("state", [StepState.SUCCEEDED, StepState.COMPENSATING, StepState.COMPENSATION_FAILED])
def test_a_standing_step_is_compensated(state: StepState) -> None:
    sent = make_attempt(outcome=AttemptOutcome.FAILED)
    attempts = [] if state is StepState.SUCCEEDED else [sent]

    assert kinds(plan_of(make_step(manifest=ORDER, state=state, attempts=attempts))) == {0: "compensate"}


def test_a_marked_step_is_unrecoverable_with_its_reason() -> None:
    assert only(plan_of(make_step(manifest=ORDER, unrecoverable="the result named no id"))) == (
        "unrecoverable",
        "the result named no id",
    )


def test_a_lost_handle_is_unrecoverable_with_its_reason() -> None:
    step = make_step(manifest=ORDER, handle=HandleLost("the undo handle was purged"))

    assert only(plan_of(step)) == ("unrecoverable", "the undo handle was purged")


def test_a_missing_value_is_unrecoverable_and_named() -> None:
    kind, reason = only(plan_of(make_step(manifest=ORDER, handle=make_handle(values={}))))

    assert (kind, "$result.id names nothing" in (reason or "")) == ("unrecoverable", True)


def test_a_plan_is_newest_first() -> None:
    plan = plan_of(*[make_step(number=number, manifest=ORDER) for number in range(4)])

    assert [action.step for action in plan.actions] == [3, 2, 1, 0]


def test_an_empty_run_is_fully_reversible() -> None:
    plan = plan_of()

    assert (plan.actions, plan.fully_reversible) == ((), True)


@pytest.mark.parametrize("link", ["depends_on", "requires_steps"])
@pytest.mark.parametrize(
    ("manifest", "state", "kind"),
    [
        (IRREVERSIBLE, StepState.SUCCEEDED, "defer"),
        (None, StepState.SUCCEEDED, "defer"),
        (ORDER, StepState.UNCERTAIN, "defer"),
        (ORDER, StepState.SUCCEEDED, "compensate"),
        (ORDER, StepState.FAILED, "compensate"),
        (ORDER, StepState.COMPENSATED, "compensate"),
        (IDEMPOTENT, StepState.SUCCEEDED, "compensate"),
        (READ, StepState.INTENDED, "compensate"),
    ],
    ids=["irreversible", "unmanifested", "unresolved", "undone first", "failed", "undone", "idempotent", "read"],
)
def test_a_step_waits_for_what_was_built_on_it(link: str, manifest: Any, state: StepState, kind: str) -> None:
    links: dict[str, Any] = {link: (0,)}
    later = make_step(number=1, manifest=manifest, state=state, **links)

    plan = plan_of(make_step(manifest=ORDER), later)

    assert kinds(plan)[0] == kind
    assert blocked(plan) == ({0: (1,)} if kind == "defer" else {})


def test_a_deferred_step_holds_what_is_beneath_it() -> None:
    steps = [
        make_step(manifest=ORDER),
        make_step(number=1, manifest=ORDER, depends_on=(0,)),
        make_step(number=2, manifest=IRREVERSIBLE, depends_on=(1,)),
    ]

    assert blocked(plan_of(*steps)) == {1: (2,), 0: (1,)}


@pytest.mark.parametrize("state", [StepState.SUCCEEDED, StepState.FAILED])
def test_a_step_that_needs_no_undo_passes_on_what_stands_on_it(state: StepState) -> None:
    steps = [
        make_step(manifest=ORDER),
        make_step(number=1, manifest=IDEMPOTENT, state=state, depends_on=(0,)),
        make_step(number=2, manifest=IRREVERSIBLE, depends_on=(1,)),
    ]

    assert blocked(plan_of(*steps)) == {0: (2,)}


def test_equal_arguments_alone_are_no_dependency() -> None:
    plan = plan_of(make_step(manifest=ORDER), make_step(number=1, manifest=IRREVERSIBLE))

    assert kinds(plan)[0] == "compensate"


@pytest.mark.parametrize(
    ("earlier", "later", "shares"),
    [
        (("file:a",), ("file:a",), True),
        (("file:a",), ("file:a/b",), True),
        (("file:a/b",), ("file:a",), True),
        (("file:a",), ("file:ab",), False),
        (("file:a/b",), ("file:a/c",), False),
        (("file:a", "file:x"), ("file:y", "file:x/y"), True),
        ((), ("file:a",), False),
        (("file:a",), None, True),
        (None, ("file:a",), True),
    ],
    ids=["equal", "below", "above", "prefix", "beside", "one of several", "none", "later whole", "earlier whole"],
)
def test_a_restoring_undo_waits_for_later_work_on_the_same_thing(earlier: Any, later: Any, shares: bool) -> None:
    unresolved = make_step(number=1, manifest=writing(), state=StepState.UNCERTAIN, touches=later)

    plan = plan_of(make_step(manifest=writing(), touches=earlier), unresolved)

    assert kinds(plan)[0] == ("defer" if shares else "compensate")


def test_names_are_shared_across_upstreams() -> None:
    steps = [
        make_step(manifest=writing(), touches=("file:a",), upstream="one"),
        make_step(number=1, manifest=writing(), touches=("file:a",), upstream="two", state=StepState.UNCERTAIN),
    ]

    assert blocked(plan_of(*steps)) == {0: (1,)}


def test_the_nearest_step_on_each_name_is_named() -> None:
    steps = [
        make_step(manifest=writing(), touches=("file:a", "file:b")),
        make_step(number=1, manifest=writing(), touches=("file:a",), state=StepState.UNCERTAIN),
        make_step(number=2, manifest=writing(), touches=("file:b/c",), state=StepState.UNCERTAIN),
        make_step(number=3, manifest=writing(), touches=("file:a",), state=StepState.UNCERTAIN),
    ]

    assert blocked(plan_of(*steps)) == {0: (1, 2)}


RESTORING = make_manifest(
    tool="file.set",
    effect="reversible",
    before={"tool": "file.get", "arguments": {"path": "$args.path"}},
    compensation={"tool": "file.put", "argument_map": {"path": "$args.path", "text": "$before.text"}},
)
TOGGLE = make_manifest(
    tool="file.toggle",
    effect="reversible",
    compensation={"tool": "file.toggle", "argument_map": {"path": "$args.path"}, "self_inverse": True},
)
PLAIN = undoable(tool="file.index", undo={"tool": "file.unindex", "argument_map": {"path": "$args.path"}})
BEFORE = make_handle(values={"$args.path": "a", "$before.text": "old"}, before=BeforeRead.FOUND)


@pytest.mark.parametrize("manifest", [RESTORING, TOGGLE], ids=["reads before", "self inverse"])
@pytest.mark.parametrize("upstream", ["file", "mail"])
def test_a_restoring_tool_without_names_touches_its_whole_upstream(manifest: Any, upstream: str) -> None:
    later = make_step(number=1, manifest=PLAIN, state=StepState.UNCERTAIN, upstream=upstream)

    plan = plan_of(make_step(manifest=manifest, handle=BEFORE), later)

    assert kinds(plan)[0] == ("defer" if upstream == "file" else "compensate")


def test_a_plain_undo_does_not_wait_for_later_work() -> None:
    later = make_step(number=1, manifest=RESTORING, state=StepState.UNCERTAIN, handle=BEFORE)

    assert kinds(plan_of(make_step(manifest=PLAIN), later))[0] == "compensate"


def test_named_work_does_not_wait_for_plain_work_of_its_upstream() -> None:
    later = make_step(number=1, manifest=PLAIN, state=StepState.UNCERTAIN)

    assert kinds(plan_of(make_step(manifest=writing(), touches=("file:a",)), later))[0] == "compensate"


@pytest.mark.parametrize(
    "later",
    [
        make_step(number=1, manifest=None, tool="file.unknown"),
        make_step(number=1, manifest=writing(), handle=HandleLost("the undo handle was purged")),
    ],
    ids=["unmanifested", "handle lost"],
)
def test_what_cannot_be_known_touches_its_whole_upstream(later: Any) -> None:
    assert blocked(plan_of(make_step(manifest=writing(), touches=("file:a",)), later)) == {0: (1,)}


def test_reads_and_undone_work_do_not_share() -> None:
    steps = [
        make_step(manifest=writing(), touches=("file:a",)),
        make_step(number=1, manifest=make_manifest(tool="file.get", effect="read_only")),
        make_step(number=2, manifest=writing(), touches=("file:a",), state=StepState.COMPENSATED),
        make_step(number=3, manifest=writing(), touches=("file:a",), state=StepState.FAILED),
    ]

    assert kinds(plan_of(*steps))[0] == "compensate"


DOUBT = "outcome of its undo unknown"
CHECKED = undoable(
    undo={"verification": {"tool": "shop.get", "arguments": {"id": "$result.id"}, "expect": {"state": "gone"}}}
)


def pair_of(manifest: Any) -> str:
    action = plan_of(make_step(manifest=manifest)).actions[0]
    assert action.pair is not None
    return action.pair


@pytest.mark.parametrize(
    ("manifest", "cancel", "fields", "kind"),
    [
        (ORDER, make_manifest(tool="shop.cancel"), {}, "compensate"),
        (ORDER, None, {"is_keyed": True}, "compensate"),
        (CHECKED, None, {}, "compensate"),
        (ORDER, None, {}, "unresolved"),
        (ORDER, None, {"outcome": None}, "unresolved"),
        (ORDER, None, {"pair": "another", "is_keyed": True}, "unresolved"),
        (ORDER, None, {"is_settled": True}, "unresolved"),
    ],
    ids=["idempotent", "keyed", "read-back", "none", "never answered", "another pair", "settled"],
)
@pytest.mark.parametrize("state", [StepState.COMPENSATING, StepState.COMPENSATION_FAILED])
def test_an_undo_in_doubt_is_finished_only_where_that_is_safe(
    manifest: Any, cancel: Any, fields: Any, kind: str, state: StepState
) -> None:
    attempt = make_attempt(**{"pair": pair_of(manifest), **fields})
    step = make_step(
        manifest=manifest,
        state=state,
        attempts=[attempt],
        follow_ups=[cancel] if cancel else [],
        is_undo_outcome_unknown=state is StepState.COMPENSATION_FAILED,
    )

    found, reason = only(plan_of(step))

    assert found == kind
    assert (DOUBT in (reason or "")) == (kind == "unresolved")


def test_an_undo_in_doubt_blocks_what_is_beneath() -> None:
    stuck = make_step(
        number=1, manifest=ORDER, state=StepState.COMPENSATING, attempts=[make_attempt()], depends_on=(0,)
    )

    assert blocked(plan_of(make_step(manifest=ORDER), stuck)) == {0: (1,)}


def test_a_resolved_undo_is_sent_afresh_with_its_old_key() -> None:
    sent = make_attempt(pair=pair_of(ORDER), is_settled=True)

    action = plan_of(make_step(manifest=ORDER, attempts=[sent])).actions[0]

    assert (action.kind.value, action.idempotency_key) == (
        "compensate",
        plan_of(make_step(manifest=ORDER)).actions[0].idempotency_key,
    )


def test_another_pair_after_a_definite_failure_gets_another_key() -> None:
    sent = make_attempt(pair="other arguments", outcome=AttemptOutcome.FAILED)
    failed = make_step(manifest=ORDER, state=StepState.COMPENSATION_FAILED, attempts=[sent])

    keys = {plan_of(step).actions[0].idempotency_key for step in (failed, make_step(manifest=ORDER))}

    assert len(keys) == 2


@pytest.mark.parametrize(
    ("fields", "observed_by", "needs"),
    [
        ({}, "gateway", False),
        ({"undo": {"requires_approval": True}}, "gateway", True),
        ({"observed_by": "gateway"}, "gateway", False),
        ({"observed_by": "gateway"}, "caller", True),
        ({}, "caller", False),
    ],
    ids=["none", "declared", "seen", "hearsay", "caller"],
)
def test_needs_approval(fields: dict[str, Any], observed_by: str, needs: bool) -> None:
    action = plan_of(make_step(manifest=undoable(**fields), observed_by=observed_by)).actions[0]

    assert action.needs_approval is needs


@pytest.mark.parametrize(
    ("before", "tool"), [(BeforeRead.ABSENT, "file.delete"), (BeforeRead.FOUND, "file.put")], ids=["absent", "found"]
)
def test_what_was_absent_is_undone_by_when_absent(before: BeforeRead, tool: str) -> None:
    manifest = make_manifest(
        tool="file.set",
        effect="reversible",
        before={
            "tool": "file.get",
            "arguments": {"path": "$args.path"},
            "absent_when": {"path": "exists", "equals": False},
        },
        compensation={
            "tool": "file.put",
            "argument_map": {"path": "$args.path", "text": "$before.text"},
            "when_absent": {"tool": "file.delete", "argument_map": {"path": "$args.path"}},
        },
    )
    values = {"$args.path": "a"} | ({"$before.text": "old"} if before is BeforeRead.FOUND else {})

    action = plan_of(make_step(manifest=manifest, handle=make_handle(values=values, before=before))).actions[0]

    assert action.compensation_tool == tool


HOUR = 3_600_000
WINDOW = {"deadline": {"within_ms": HOUR}}
FALLBACK = {"fallback": {"tool": "shop.credit", "argument_map": {"id": "$result.id"}, "residue": ["a credit note"]}}


@pytest.mark.parametrize(
    ("undo", "late_ms", "expected"),
    [
        (WINDOW, HOUR, ("compensate", "shop.cancel")),
        (WINDOW, HOUR + 1, ("unrecoverable", None)),
        (WINDOW | FALLBACK, HOUR + 1, ("compensate", "shop.credit")),
        (WINDOW | FALLBACK, 0, ("compensate", "shop.cancel")),
    ],
    ids=["at the last moment", "closed", "fallback", "open"],
)
def test_an_undo_window_closes(undo: dict[str, Any], late_ms: int, expected: tuple[str, str | None]) -> None:
    manifest = undoable(effect="compensable", undo=undo)

    action = plan_of(make_step(manifest=manifest), now=NOW + timedelta(milliseconds=late_ms)).actions[0]

    assert (action.kind.value, action.compensation_tool) == expected
    assert action.is_fallback == (expected[1] == "shop.credit")


def test_a_closed_window_names_its_time() -> None:
    late = NOW + timedelta(hours=2)

    assert only(plan_of(make_step(manifest=undoable(undo=WINDOW)), now=late)) == (
        "unrecoverable",
        "undo window closed at 2026-03-01T13:00:00Z",
    )


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("2026-03-01T13:00:00+01:00", "compensate"),
        ("2026-03-01T12:59:59+01:00", "unrecoverable"),
        ("2026-03-01T13:00:00", "unrecoverable"),
        (1_772_366_400_000, "compensate"),
        (1_772_366_399_999, "unrecoverable"),
        (0, "unrecoverable"),
        (True, "unrecoverable"),
        ("soon", "unrecoverable"),
        (1e300, "unrecoverable"),
        (None, "unrecoverable"),
    ],
)
def test_an_undo_window_from_the_result(value: Any, kind: str) -> None:
    manifest = undoable(undo={"deadline": {"at": "$result.until"}})
    handle = make_handle(values={"$result.id": "o1", "$result.until": value})

    assert kinds(plan_of(make_step(manifest=manifest, handle=handle))) == {0: kind}


def test_a_fallback_never_serves_while_the_inverse_is_in_doubt() -> None:
    manifest = undoable(undo=WINDOW | FALLBACK)
    sent = make_attempt(pair=pair_of(manifest), is_keyed=True)
    step = make_step(manifest=manifest, state=StepState.COMPENSATING, attempts=[sent])

    action = plan_of(step, now=NOW + timedelta(hours=2)).actions[0]

    assert (action.compensation_tool, action.role) == ("shop.cancel", Role.PRIMARY)


def test_a_redacted_argument_is_hidden_nested_too() -> None:
    manifest = undoable(
        undo={"argument_map": {"a": "$args.card.number", "b": "$args.card", "c": "$args.items[0]", "d": "$args.path"}},
        audit={"redaction": ["$args.card.number", "$args.items"]},
    )
    values = {
        "$args.card.number": "4111",
        "$args.card": {"number": "4111", "name": "Ann"},
        "$args.items.0": "book",
        "$args.path": "x",
    }

    action = plan_of(make_step(manifest=manifest, handle=make_handle(values=values))).actions[0]

    assert action.args == {
        "a": "[redacted]",
        "b": {"number": "[redacted]", "name": "Ann"},
        "c": "[redacted]",
        "d": "x",
    }


def test_a_value_named_like_a_credential_is_hidden() -> None:
    manifest = undoable(undo={"argument_map": {"auth": "$args.api_token"}})

    action = plan_of(make_step(manifest=manifest, handle=make_handle(values={"$args.api_token": "s3cr3t"}))).actions[0]

    assert action.args == {"auth": "[redacted]"}


def test_a_value_handed_to_an_argument_named_like_a_credential_is_hidden() -> None:
    named = {
        "password": "$args.renamed",
        "login": {"user": "$args.user", "secret": {"const": "s3cr3t"}},
        "options": "$args.options",
        "also": "$args.renamed",
    }
    values = {
        "$args.renamed": "s3cr3t",
        "$args.user": "ann",
        "$args.options": [{"api_key": "s3cr3t", "name": "x"}],
    }
    step = make_step(manifest=undoable(undo={"argument_map": named}), handle=make_handle(values=values))

    assert plan_of(step).actions[0].args == {
        "password": "[redacted]",
        "login": {"user": "ann", "secret": "[redacted]"},
        "options": [{"api_key": "[redacted]", "name": "x"}],
        "also": "[redacted]",
    }


def test_the_digest_covers_what_is_hidden() -> None:
    manifest = undoable(audit={"redaction": ["$result.id"]})
    plans = [
        plan_of(make_step(manifest=manifest, handle=make_handle(values={"$result.id": value}))) for value in ("a", "b")
    ]

    assert plans[0].to_json()["actions"] == plans[1].to_json()["actions"]
    assert plans[0].digest != plans[1].digest


@pytest.mark.parametrize(
    "changed",
    [
        make_step(manifest=ORDER, state=StepState.COMPENSATED),
        make_step(manifest=ORDER, handle=make_handle(values={"$result.id": "o2"})),
        make_step(manifest=undoable(undo={"residue": ["a line"], "kind": "compensation"})),
        make_step(manifest=undoable(undo={"requires_approval": True})),
        make_step(manifest=ORDER, summary="order a book"),
    ],
    ids=["state", "arguments", "residue", "approval", "summary"],
)
def test_the_digest_covers_what_is_shown(changed: Any) -> None:
    assert plan_of(changed).digest != plan_of(make_step(manifest=ORDER)).digest


def test_the_digest_of_an_equal_plan_is_equal() -> None:
    assert plan_of(make_step(manifest=ORDER)).digest == plan_of(make_step(manifest=ORDER)).digest


def test_what_nothing_can_run_is_said_first_and_is_no_part_of_the_digest() -> None:
    step = make_step(manifest=ORDER)

    plan = plan_of(step, can_run=lambda tool, upstream: False)

    assert plan.to_json()["actions"][0]["reason"] == "nothing can run shop.cancel"
    assert not plan.fully_reversible
    assert plan.digest == plan_of(step).digest


def test_the_golden_action() -> None:
    manifest = make_manifest(
        tool="stripe.create_charge",
        effect="compensable",
        compensation={
            "tool": "stripe.refund",
            "residue": ["the charge still appears on the customer's statement"],
            "argument_map": {"charge_id": "$result.id", "amount": "$args.amount"},
            "verification": {
                "tool": "stripe.get_charge",
                "arguments": {"charge_id": "$result.id"},
                "expect": {"refunded": True},
            },
        },
    )
    handle = make_handle(values={"$result.id": "ch_o9", "$args.amount": 700})
    expected = {
        "step": 0,
        "tool": "stripe.create_charge",
        "kind": "compensate",
        "compensation_tool": "stripe.refund",
        "args": {"amount": 700, "charge_id": "ch_o9"},
        "idempotency_key": "e5ecbb51d5597b6dfb2e2914a0921be1efca3ef93919a06466d0f3d777a343b3",
        "needs_approval": False,
        "residue": ["the charge still appears on the customer's statement"],
        "compensation_kind": "compensation",
        "verified": True,
    }

    plan = plan_of(make_step(manifest=manifest, handle=handle)).to_json()

    assert plan["actions"][0] | expected == plan["actions"][0]
    assert (plan["run_id"], plan["fully_reversible"]) == ("run_v", True)
