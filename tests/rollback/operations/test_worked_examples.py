"""The examples that the documents work through, line by line."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.operations.calls import call
from manifests_registry.core.snapshot import Snapshot
from reversi_sdk.errors import EffectUncertainError
from rollback.core.text import plan_lines, report_lines
from rollback.operations.resolution import resolve
from rollback.queries import get_plan
from tests.manifests_registry.factories import make_snapshot
from tests.rollback.downstream import Downstream
from tests.rollback.journal import AGENT, START, Ticking, make_run, roll_back

pytestmark = pytest.mark.usefixtures("db")


def stripe() -> Snapshot:
    return make_snapshot(
        {"tool": "stripe.get_charge", "effect": "read_only", "permission": "payments:read"},
        {"tool": "stripe.refund", "effect": "idempotent", "permission": "payments:write"},
        {
            "tool": "stripe.create_charge",
            "effect": "compensable",
            "permission": "payments:write",
            "compensation": {
                "tool": "stripe.refund",
                "residue": ["the charge still appears on the customer's statement"],
                "argument_map": {"charge_id": "$result.id", "amount": "$args.amount"},
                "verification": {
                    "tool": "stripe.get_charge",
                    "arguments": {"charge_id": "$result.id"},
                    "expect": {"refunded": True},
                },
            },
        },
    )


def charge(*, run_id: str, execute: Any) -> None:
    args = {"order_id": "o1", "amount": 700}
    call(run_id, "stripe.create_charge", args, execute=execute, principal=AGENT, snapshot=stripe(), clock=Ticking())


def test_the_plan_of_run_v() -> None:
    make_run(run_id="run_v", scope=("payments:*",))
    charge(run_id="run_v", execute=lambda args, key: {"id": "ch_o9"})

    plan = get_plan(run_id="run_v", now=START).to_json()

    documented = {
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
    action = plan["actions"][0]
    assert {name: action[name] for name in documented} == documented
    assert (plan["run_id"], len(plan["actions"]), plan["fully_reversible"]) == ("run_v", 1, True)


def test_the_uncertain_step_of_run_timeout() -> None:
    def lose(args: dict[str, Any], key: str | None) -> None:
        raise EffectUncertainError("timed out")

    make_run(run_id="run_timeout", scope=("payments:*",))
    with pytest.raises(EffectUncertainError):
        charge(run_id="run_timeout", execute=lose)
    before = get_plan(run_id="run_timeout", now=START)

    step = resolve(
        run_id="run_timeout",
        number=0,
        status="succeeded",
        result={"id": "ch_o50"},
        note="found ch_o50 in the Stripe dashboard",
        actor="dana",
        clock=Ticking(),
    )
    after = plan_lines(get_plan(run_id="run_timeout", now=START))

    first, *_, last = [line for line in plan_lines(before) if not line.startswith(" " * 10)]
    assert first == (
        "  step 0  stripe.create_charge  unresolved  outcome unknown: reconcile with the downstream system"
    )
    assert (last, before.fully_reversible) == ("  NOT fully reversible: see above", False)
    assert (step.number, step.state) == (0, "succeeded")
    assert after[0] == "  step 0  stripe.create_charge  compensate  -> stripe.refund"


def test_the_call_that_a_compensator_gets() -> None:
    class Shop(Downstream):
        def _take_effect(self, call: Any) -> None:
            self.keys.add(call.idempotency_key)

    downstream = Shop(is_readable=False)
    make_run(run_id="run_v", scope=("payments:*",))
    charge(run_id="run_v", execute=lambda args, key: {"id": "ch_o9"})

    lines = report_lines(roll_back(downstream=downstream, run_id="run_v"))

    assert downstream.requests[0].to_json() == {
        "run_id": "run_v",
        "step": 0,
        "tool": "stripe.refund",
        "original_tool": "stripe.create_charge",
        "args": {"amount": 700, "charge_id": "ch_o9"},
        "idempotency_key": "e5ecbb51d5597b6dfb2e2914a0921be1efca3ef93919a06466d0f3d777a343b3",
    }
    assert lines[-2:] == (
        "undone but not verified (declared read-back not run; pass --reader-cmd): 0",
        "rollback INCOMPLETE",
    )
