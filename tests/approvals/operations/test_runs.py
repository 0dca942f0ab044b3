"""Runs opened on somebody's behalf stay within what the caller and the caller's key may (D11)."""

from typing import Any

import pytest

from approvals.core.errors import NotPermitted, WiderThanKey
from approvals.core.people import Act, Caller, Limits
from approvals.operations.runs import close_run_for, open_run_for
from approvals.queries import get_run_for
from ledger.core.errors import BadField, ForeignRun, RunNotFound
from ledger.core.statuses import Mode, RunState
from ledger.core.values import RunRecord
from ledger.queries import list_runs
from tests.approvals.factories import NOW
from tests.databases import Database


def agent(*, name: str = "bot", **limits: Any) -> Caller:
    return Caller(name, frozenset({"agent"}), Limits(**limits))


def opened(*, caller: Caller, **fields: Any) -> RunRecord:
    return open_run_for(caller=caller, now=NOW, **fields)[0]


def test_open_run_for_fills_in_what_the_key_fixes(db: Database) -> None:
    caller = agent(scope=("shop:*",), actor="billing", tenant="acme", environment="live")

    run = opened(caller=caller, scope=["shop:read"], reason="invoice 12", labels={"team": "a"})

    assert (run.principal, run.actor, run.tenant, run.environment) == ("bot", "billing", "acme", "live")
    assert (run.scope, run.mode, run.reason, run.labels) == (
        ("shop:read",),
        Mode.ENFORCE,
        "invoice 12",
        {"team": "a"},
    )


WIDER: dict[str, dict[str, Any]] = {
    "scope": {"scope": ["*"]},
    "mode": {"mode": "observe"},
    "actor": {"actor": "payroll"},
    "tenant": {"tenant": "other"},
    "environment": {"environment": "test"},
}


@pytest.mark.parametrize("field", WIDER)
def test_open_run_for_refuses_a_wider(sqlite_db: Database, field: str) -> None:
    caller = agent(scope=("shop:*",), actor="billing", tenant="acme", environment="live")

    with pytest.raises(WiderThanKey) as caught:
        opened(caller=caller, **{"scope": ["shop:*"], **WIDER[field]})

    assert caught.value.field == field
    assert list_runs() == []


def test_open_run_for_is_for_agents(sqlite_db: Database) -> None:
    with pytest.raises(NotPermitted):
        opened(caller=Caller("dana", frozenset({"operator"})))


def test_open_run_for_leaves_a_bad_mode_to_be_told(sqlite_db: Database) -> None:
    with pytest.raises(BadField):
        opened(caller=agent(), mode="sideways")


def test_open_run_for_continues_the_run_of_the_same_owner(db: Database) -> None:
    wide = opened(caller=agent(), run_id="run_1", scope=["shop:*"])

    again, is_new = open_run_for(caller=agent(), now=NOW, run_id="run_1", scope=["bank:*"])

    assert (again, is_new) == (wide, False)


def test_a_narrow_key_cannot_slip_into_a_wider_run_of_its_owner(db: Database) -> None:
    opened(caller=agent(), run_id="run_1", scope=["*"])
    narrow = agent(scope=("shop:read",))

    with pytest.raises(WiderThanKey):
        opened(caller=narrow, run_id="run_1")
    for act in (Act.CALL, Act.READ_OWN_RUN, Act.RECONCILE_OWN, Act.COMPENSATE_OWN):
        with pytest.raises(WiderThanKey):
            get_run_for(caller=narrow, run_id="run_1", own=act, others=None)


def test_the_run_of_another_is_nobody_elses(db: Database) -> None:
    opened(caller=agent(), run_id="run_1")
    eve = agent(name="eve")

    with pytest.raises(ForeignRun):
        opened(caller=eve, run_id="run_1")
    with pytest.raises(ForeignRun):
        get_run_for(caller=eve, run_id="run_1", own=Act.READ_OWN_RUN, others=Act.READ_ANY_RUN)
    with pytest.raises(RunNotFound):
        get_run_for(caller=eve, run_id="run_2", own=Act.READ_OWN_RUN, others=Act.READ_ANY_RUN)


@pytest.mark.parametrize(
    ("caller", "refusal"),
    [
        (agent(), None),
        (agent(name="eve"), ForeignRun),
        (Caller("dana", frozenset({"operator"})), None),
        (Caller("dana", frozenset({"auditor"})), ForeignRun),
        (Caller("bot", frozenset({"auditor"})), NotPermitted),
    ],
)
def test_close_run_for(sqlite_db: Database, caller: Caller, refusal: type[Exception] | None) -> None:
    run = opened(caller=agent())

    if refusal is not None:
        with pytest.raises(refusal):
            close_run_for(caller=caller, run_id=run.id, now=NOW)
        return

    assert close_run_for(caller=caller, run_id=run.id, now=NOW).state is RunState.CLOSED
