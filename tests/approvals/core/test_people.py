"""Who may do what: the table of acts, and what a key may narrow and never widen (D11, D33)."""

import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.core.errors import NotPermitted, WiderThanKey
from approvals.core.people import (
    ALLOWED,
    Act,
    Caller,
    Limits,
    Role,
    local_admin,
    may,
    may_on_run,
    narrow,
    require,
    require_on_run,
)
from ledger.core.errors import ForeignRun
from ledger.core.statuses import Mode, RunState
from ledger.core.values import RunRecord

NOW = datetime(2026, 3, 1, tzinfo=UTC)
RUN = RunRecord(
    id="run_1",
    principal="bot",
    actor="billing",
    tenant="acme",
    environment="live",
    mode=Mode.ENFORCE,
    scope=("shop:read",),
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


def caller(*roles: str, name: str = "bot", limits: Limits | None = None) -> Caller:
    return Caller(name, frozenset(roles), limits)


# Per role what it may do, spelled out: a change of the table is a change of this list, seen by whoever reviews it.
MATRIX: dict[str, set[str]] = {
    "agent": {"open_run", "call", "read_own_run", "close_own_run", "reconcile_own", "compensate_own", "sign_in"},
    "operator": {
        "read_any_run",
        "close_any_run",
        "roll_back",
        "verify",
        "resolve",
        "compensate_any",
        "read_approvals",
        "vote",
        "add_halt",
        "list_halts",
        "sign_in",
    },
    "reviewer": {"read_approvals", "vote", "list_halts", "sign_in"},
    "auditor": {"read_any_run", "read_approvals", "list_halts", "list_keys", "export", "sign_in"},
    "admin": {act.value for act in Act},
    "finance": {"vote", "list_halts", "sign_in"},
}


@pytest.mark.parametrize("role", MATRIX)
def test_may_is_the_table(role: str) -> None:
    assert {act.value for act in Act if may(caller(role), act)} == MATRIX[role]


def test_may_covers_every_role() -> None:
    assert set(ALLOWED) == set(Role)


def test_may_adds_the_roles_up_and_knows_nobody_without_one() -> None:
    assert may(caller("agent", "operator"), Act.CALL)
    assert may(caller("agent", "operator"), Act.ROLL_BACK)
    assert not any(may(caller(), act) for act in Act)


def test_require_names_who_and_what() -> None:
    with pytest.raises(NotPermitted, match="bot may not lift halt"):
        require(caller("operator"), Act.LIFT_HALT)


def test_local_admin_may_everything() -> None:
    assert all(may(local_admin("local:ada"), act) for act in Act)


LIMITS = Limits(scope=("shop:*", "bank:read"), modes=("enforce",), actor="billing", tenant="acme")
WIDER = {
    "another actor": ({"actor": "payroll"}, "actor"),
    "no actor": ({"actor": ""}, "actor"),
    "another tenant": ({"tenant": "other"}, "tenant"),
    "observing": ({"mode": "observe"}, "mode"),
    "more than the scope": ({"scope": ("bank:write",)}, "scope"),
    "everything": ({"scope": ("*",)}, "scope"),
    "a glob over the glob": ({"scope": ("sh*:read",)}, "scope"),
    "one of several": ({"scope": ("shop:read", "bank:*")}, "scope"),
    "a line break after it": ({"scope": ("bank:read\n",)}, "scope"),
}


@pytest.mark.parametrize("case", WIDER)
def test_narrow_refuses_what_is_wider(case: str) -> None:
    asked, field = WIDER[case]

    with pytest.raises(WiderThanKey) as caught:
        narrow(LIMITS, **asked)  # type: ignore[arg-type]  # a table of different fields

    assert caught.value.field == field


def test_narrow_fills_in_what_is_fixed() -> None:
    fields = narrow(LIMITS, environment="test", scope=["shop:w*", "bank:read"])

    assert (fields.actor, fields.tenant, fields.environment) == ("billing", "acme", "test")
    assert (fields.mode, fields.scope) == ("enforce", ("shop:w*", "bank:read"))


def test_narrow_opens_what_the_key_allows_when_it_only_observes() -> None:
    assert narrow(Limits(modes=("observe",))).mode == "observe"


def test_narrow_leaves_a_word_that_is_no_mode_to_the_ledger() -> None:
    assert narrow(LIMITS, mode="sideways").mode == "sideways"


def test_narrow_without_a_key_takes_what_is_asked_for() -> None:
    fields = narrow(None, actor="a", mode="observe", scope=["*"])

    assert (fields.actor, fields.tenant, fields.mode, fields.scope) == ("a", "", "observe", ("*",))


globs = st.text(alphabet="ab:*", min_size=1, max_size=6)


def language(glob: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, glob.split("*"))), re.DOTALL)


@given(allowed=globs, requested=globs, filler=st.text(alphabet="ab:c", max_size=4))
def test_narrow_never_lets_a_scope_grow(allowed: str, requested: str, filler: str) -> None:
    try:
        narrow(Limits(scope=(allowed,)), scope=(requested,))
    except WiderThanKey:
        return
    granted = requested.replace("*", filler)

    assert language(allowed).fullmatch(granted)


ON_RUN: dict[str, tuple[Caller, Act | None, Act | None, type[Exception] | None]] = {
    "the agent of the run": (caller("agent"), Act.CALL, None, None),
    "an agent of another run": (caller("agent", name="eve"), Act.CALL, None, ForeignRun),
    "an operator reads any": (caller("operator", name="eve"), Act.READ_OWN_RUN, Act.READ_ANY_RUN, None),
    "an operator makes no calls": (caller("operator", name="eve"), Act.CALL, None, ForeignRun),
    "the owner without the role": (caller("auditor"), Act.CALL, None, NotPermitted),
    "the agent may not resolve": (caller("agent"), None, Act.RESOLVE, NotPermitted),
    "an admin": (caller("admin", name="root"), Act.READ_OWN_RUN, Act.READ_ANY_RUN, None),
    "an admin in another's run": (caller("admin", name="root"), Act.CALL, None, ForeignRun),
    "a key of another tenant": (caller("agent", limits=Limits(tenant="other")), Act.CALL, None, WiderThanKey),
    "a narrower key": (caller("agent", limits=Limits(scope=("bank:*",))), Act.CALL, None, WiderThanKey),
    "a key that only observes": (caller("agent", limits=Limits(modes=("observe",))), Act.CALL, None, WiderThanKey),
    "a key that fits": (caller("agent", limits=Limits(scope=("shop:*",), actor="billing")), Act.CALL, None, None),
    "an operator's key of another tenant": (
        caller("operator", name="eve", limits=Limits(tenant="other")),
        None,
        Act.ROLL_BACK,
        WiderThanKey,
    ),
    "an operator's key with a scope": (
        caller("operator", name="eve", limits=Limits(scope=("bank:*",))),
        None,
        Act.ROLL_BACK,
        None,
    ),
}


@pytest.mark.parametrize("case", ON_RUN)
def test_require_on_run(case: str) -> None:
    who, own, others, refusal = ON_RUN[case]

    assert may_on_run(who, RUN, own=own, others=others) is (refusal is None)
    if refusal is None:
        require_on_run(who, RUN, own=own, others=others)
    else:
        with pytest.raises(refusal):
            require_on_run(who, RUN, own=own, others=others)


def test_require_on_run_says_that_a_foreign_run_belongs_to_another_principal() -> None:
    with pytest.raises(ForeignRun, match="belongs to another principal"):
        require_on_run(caller("agent", name="eve"), RUN, own=Act.READ_OWN_RUN, others=Act.READ_ANY_RUN)


def test_require_on_run_refuses_an_observing_run_to_a_key_that_enforces() -> None:
    watched = replace(RUN, mode=Mode.OBSERVE)

    with pytest.raises(WiderThanKey, match="mode"):
        require_on_run(caller("agent", limits=Limits()), watched, own=Act.CALL, others=None)
