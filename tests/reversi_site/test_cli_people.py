"""People, keys and votes on the command line."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from approvals.core.errors import KeyRevoked
from approvals.core.requests import ApprovalRecord
from approvals.operations.keys import authenticate
from approvals.operations.people import ensure_user
from approvals.queries import get_approval, get_caller
from reversi_site.identity import local_principal
from tests.approvals.factories import begin, make_run
from tests.approvals.people import ask, make_user
from tests.databases import Database
from tests.manifests_registry.factories import shop
from tests.reversi_site.conftest import Answer

Reversi = Callable[..., Answer]


def now() -> datetime:
    return datetime.now(UTC)


def waiting(**fields: Any) -> ApprovalRecord:
    """A request of the present: commands know no other time."""
    return ask(**{"now": now(), **fields})


def test_roles_setup_makes_the_five_roles_once(db: Database, reversi: Reversi) -> None:
    assert reversi("roles", "setup").lines == ["made agent, operator, reviewer, admin, auditor"]
    assert reversi("roles", "setup").lines == ["the five roles are there"]
    assert reversi("roles", "setup", "--json").document["made"] == []


def test_roles_are_granted_listed_and_revoked(sqlite_db: Database, reversi: Reversi) -> None:
    assert reversi("roles", "list").lines == ["no users"]
    assert reversi("roles", "grant", "dana", "operator", "finance").lines == ["dana  finance, operator"]
    assert reversi("roles", "revoke", "dana", "operator").lines == ["dana  finance"]
    assert reversi("roles", "revoke", "dana", "finance", "--json").document == {
        "user": "dana",
        "roles": [],
        "active": True,
    }
    assert reversi("roles", "list").lines == ["dana  no role"]


def test_roles_of_nobody_cannot_be_revoked(sqlite_db: Database, reversi: Reversi) -> None:
    answer = reversi("roles", "revoke", "dana", "operator")

    assert (answer.code, answer.out) == (1, "")
    assert "no user dana" in answer.err


def test_apikey_create_makes_the_user_and_prints_the_key_as_the_last_word(db: Database, reversi: Reversi) -> None:
    answer = reversi("apikey", "create", "billing-agent", "--role", "agent", "--expires", "30d")

    caller = authenticate(token=answer.out.split()[-1], now=now())
    assert answer.code == 0
    assert (caller.username, caller.roles) == ("billing-agent", frozenset({"agent"}))
    assert "created the user billing-agent: agent" in answer.err


def test_apikey_create_without_a_role_makes_an_agent(sqlite_db: Database, reversi: Reversi) -> None:
    answer = reversi("apikey", "create", "billing-agent")

    assert authenticate(token=answer.out.split()[-1], now=now()).roles == {"agent"}


def test_apikey_create_takes_limits(sqlite_db: Database, reversi: Reversi) -> None:
    answer = reversi(
        "apikey",
        "create",
        "bot",
        *("--scope", "shop:*", "--scope", "bank:read", "--mode", "observe"),
        *("--actor", "billing", "--tenant", "acme", "--environment", "live", "--label", "nightly", "--json"),
    )

    caller = authenticate(token=answer.document["key"], now=now())
    assert caller.limits is not None
    assert (caller.limits.scope, caller.limits.modes) == (("shop:*", "bank:read"), ("observe",))
    assert caller.limits.fixed == {"actor": "billing", "tenant": "acme", "environment": "live"}
    shown = reversi("apikey", "list").lines
    assert shown[0].endswith("never expires, last used " + shown[0].rpartition("last used ")[2])
    assert shown[1] == "  scope shop:*, bank:read  observe  actor billing  tenant acme  environment live"


def test_apikey_create_gives_a_key_no_more_than_its_owner(sqlite_db: Database, reversi: Reversi) -> None:
    make_user(name="bot", roles=("agent",))

    answer = reversi("apikey", "create", "bot", "--role", "admin")

    assert (answer.code, answer.out) == (1, "")
    assert "bot is not admin" in answer.err
    assert reversi("apikey", "list").lines == ["no keys"]


def test_apikey_revoke_closes_a_key(db: Database, reversi: Reversi) -> None:
    token = reversi("apikey", "create", "bot").out.split()[-1]
    prefix = token.split("_")[1]

    answer = reversi("apikey", "revoke", f"rk_{prefix}")

    assert f"by {local_principal()}" in answer.lines[0]
    with pytest.raises(KeyRevoked):
        authenticate(token=token, now=now())
    assert reversi("apikey", "list", "--user", "bot", "--json").document["keys"][0]["revoked_by"] == local_principal()
    assert reversi("apikey", "revoke", "nothere").code == 1


def test_keys_are_never_listed_whole(sqlite_db: Database, reversi: Reversi) -> None:
    secret = reversi("apikey", "create", "bot").out.split()[-1].split("_")[2]

    assert secret not in reversi("apikey", "list").out + reversi("apikey", "list", "--json").out


def test_approvals_are_listed_and_shown_with_every_argument(db: Database, reversi: Reversi) -> None:
    approval = waiting(args={"item": "bo\u202eok", "want": "gone"}, reason="invoice 12")

    (line,) = reversi("approvals", "list").lines
    shown = reversi("approvals", "show", approval.id)

    assert line.startswith(f"{approval.id}  pending  0 of 1  {approval.run_id}  agent-a  ")
    assert shown.lines[0] == f"{approval.id} is pending"
    assert "  tool      shop.order  (write, can be undone)" in shown.lines
    assert "  reason    invoice 12" in shown.lines
    assert '"item": "bo\\\\u{202e}ok"' in shown.out
    document = reversi("approvals", "show", approval.id, "--json").document
    assert document["arguments"] == {"item": "bo\\u{202e}ok", "want": "gone"}


def test_a_vote_on_the_command_line_lets_the_call_pass(db: Database, reversi: Reversi) -> None:
    run = make_run()
    approval = waiting(run_id=run.id)

    answer = reversi("approvals", "approve", approval.id, "--reason", "looked at it")

    assert (answer.code, answer.lines[0]) == (0, f"{approval.id} is approved")
    assert begin(run_id=run.id, snapshot=shop(approval="always"), now=now()).step.number == 0
    assert reversi("approvals", "list").lines == ["no approvals"]
    ended = reversi("approvals", "show", approval.id)
    assert "(gone: the request has ended)" in ended.out
    assert "  used      by step 0 at" in ended.out
    (listed,) = reversi("approvals", "list", "--all", "--run", run.id, "--json").document["approvals"]
    assert (listed["state"], listed["votes"][0]["voter"]) == ("used", local_principal())


def test_a_vote_by_name_is_that_users(sqlite_db: Database, reversi: Reversi) -> None:
    make_user(name="fay", roles=("finance",))
    approval = waiting(approval={"roles": ["finance"]})

    answer = reversi("approvals", "deny", approval.id, "--by", "fay", "--reason", "wrong account", "--json")

    assert (answer.document["state"], answer.document["denied_reason"]) == ("denied", "wrong account")
    assert get_approval(approval.id, now=now()).votes[0].role == "finance"


REFUSED: dict[str, tuple[list[str], str]] = {
    "nobody": (["--by", "nobody"], "no user nobody"),
    "who may not": (["--by", "eve"], "only operator or admin may vote on it"),
    "the owner": (["--by", "agent-a"], "nobody approves the calls of their own run"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_vote_is_refused(sqlite_db: Database, reversi: Reversi, case: str) -> None:
    options, why = REFUSED[case]
    make_user(name="eve", roles=("agent",))
    make_user(name="agent-a", roles=("admin",))
    approval = waiting()

    answer = reversi("approvals", "approve", approval.id, *options)

    assert (answer.code, answer.out) == (1, "")
    assert why in answer.err
    assert "--by" not in answer.err


def test_whoever_may_not_approve_their_own_call_is_told_how_somebody_else_does(
    sqlite_db: Database, reversi: Reversi
) -> None:
    mine = local_principal()
    approval = waiting(run_id=make_run(principal=mine).id, principal=mine)

    answer = reversi("approvals", "approve", approval.id)

    assert (answer.code, answer.out) == (1, "")
    assert "nobody approves the calls of their own run; whoever else votes is named with --by" in answer.err


def test_votes_on_what_is_answered_or_unknown_are_refused(sqlite_db: Database, reversi: Reversi) -> None:
    approval = waiting()
    reversi("approvals", "approve", approval.id)

    assert reversi("approvals", "approve", approval.id).code == 1
    assert reversi("approvals", "show", "apr_none").code == 1


def test_the_user_of_the_machine_does_not_approve_their_own_run(sqlite_db: Database, reversi: Reversi) -> None:
    me = local_principal()
    run = make_run(principal=me)
    approval = waiting(run_id=run.id, principal=me)

    answer = reversi("approvals", "approve", approval.id)

    assert answer.code == 1
    assert get_approval(approval.id, now=now()).votes == ()


@pytest.mark.parametrize(
    "arguments",
    [
        ("apikey", "create", "local:ada"),
        ("apikey", "create", "bot", "--role", "Admin"),
        ("roles", "grant", "dana", "the boss"),
    ],
)
def test_names_that_nobody_can_have_are_refused(
    sqlite_db: Database, reversi: Reversi, arguments: tuple[str, ...]
) -> None:
    assert reversi(*arguments).code == 1
    assert reversi("roles", "list").lines == ["no users"]


def test_a_key_that_never_worked_is_a_wrong_argument(sqlite_db: Database, reversi: Reversi) -> None:
    answer = reversi("apikey", "create", "bot", "--expires", "soon")

    assert answer.code == 64
    assert reversi("roles", "list").lines == ["no users"]


def test_what_a_user_is_counts_for_a_vote_from_then_on(sqlite_db: Database, reversi: Reversi) -> None:
    ensure_user(username="dana", roles=[], actor="local:root", now=now())
    approval = waiting()
    assert reversi("approvals", "approve", approval.id, "--by", "dana").code == 1

    reversi("roles", "grant", "dana", "operator")

    assert get_caller("dana").roles == {"operator"}
    assert reversi("approvals", "approve", approval.id, "--by", "dana").code == 0
