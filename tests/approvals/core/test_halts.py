"""Which calls a halt stops (D19)."""

from dataclasses import replace
from typing import Any

import pytest

from approvals.core.halts import HaltScope, call_fields, halts_call
from tests.approvals.core.test_gate import RUN

CASES: dict[str, tuple[HaltScope, dict[str, Any], bool]] = {
    "no field stops all": (HaltScope(), {}, True),
    "tool glob": (HaltScope(tool="shop.*"), {}, True),
    "other tool": (HaltScope(tool="bank.*"), {}, False),
    "case counts": (HaltScope(tool="SHOP.*"), {}, False),
    "every named field must match": (HaltScope(tool="shop.*", actor="billing"), {"actor": "sales"}, False),
    "both match": (HaltScope(tool="shop.*", actor="bill*"), {"actor": "billing"}, True),
    "a lacking field matches no glob": (HaltScope(tenant="*"), {}, False),
    "tenant": (HaltScope(tenant="t?"), {"tenant": "t1"}, True),
    "environment": (HaltScope(environment="prod"), {"environment": "prod"}, True),
    "principal": (HaltScope(principal="agent-?"), {}, True),
    "run": (HaltScope(run="run_[12]"), {}, True),
    "another run": (HaltScope(run="run_2"), {}, False),
}


@pytest.mark.parametrize("case", CASES)
def test_halts_call(case: str) -> None:
    scope, fields, is_halted = CASES[case]
    run = replace(RUN, **fields)

    assert halts_call(scope, call_fields(run, "shop.order")) is is_halted


def test_halt_scope_shows_named_fields_only() -> None:
    assert HaltScope(tool="shop.*", run="r").to_json() == {"tool": "shop.*", "run": "r"}
