"""Requests for approval: what the approver sees, and votes."""

from __future__ import annotations

from html import unescape

from approvals.operations.approvals import cast_vote
from approvals.queries import get_approval, get_caller
from tests.console.agents import (
    ask_to_wire,
    do,
)
from tests.console.conftest import Console
from tests.console.reading import NOW, RUN, next_page, post, run_of, text_of, url, words_of


def test_a_call_is_approved_and_then_passes(console: Console) -> None:
    run_of(console)
    asked = ask_to_wire(console.world, RUN, principal="agent")
    client = console.client("approver")
    before = words_of(text_of(client, url("approval", approval_id=asked.id)))

    after = next_page(client, url("vote", approval_id=asked.id), {"decision": "approve", "reason": "as agreed"})

    for told in ('"amount": 125000', '"iban": "DE02', "invoice 12 is due", "shop.cancel makes amends", "by finance"):
        assert told in before, told
    assert "can be compensated (not undone)" in before
    assert "You approved the call." in after
    assert "approver approved as finance" in after
    assert "as agreed" in after
    assert "You cannot vote: it is already approved" in after
    args = {"amount": 125_000, "iban": "DE02 1203 0000 0000 2020 51", "pin": "9911-secret"}
    assert do(console.world, RUN, "shop.wire", args, principal="agent") == 0


def test_a_denial_needs_a_reason(console: Console) -> None:
    run_of(console)
    asked = ask_to_wire(console.world, RUN, principal="agent")
    client, address = console.client("approver"), url("vote", approval_id=asked.id)

    refused = words_of(post(client, address, {"decision": "deny", "reason": "  "}, status=400))
    page = next_page(client, address, {"decision": "deny", "reason": "we never ordered that"})

    assert "Say why: whoever asked reads it." in refused
    assert "You denied the call." in page
    assert get_approval(asked.id, now=NOW).denied_reason == "we never ordered that"


def test_a_second_vote_is_not_counted(console: Console) -> None:
    run_of(console)
    asked = ask_to_wire(console.world, RUN, principal="agent")
    client, address = console.client("approver"), url("vote", approval_id=asked.id)
    post(client, address, {"decision": "approve"})

    page = post(client, address, {"decision": "deny", "reason": "on second thought"}, status=409)

    assert "Not counted." in page
    assert len(get_approval(asked.id, now=NOW).votes) == 1


def test_why_somebody_cannot_vote_is_said(console: Console) -> None:
    run_of(console)
    asked = ask_to_wire(console.world, RUN, principal="agent")
    address = url("approval", approval_id=asked.id)

    assert "only finance may vote on it" in text_of(console.client("admin"), address)
    assert "nobody approves the calls of their own run" in text_of(console.client("agent"), address)
    assert "is about somebody else" in unescape(text_of(console.client("other_agent"), address, status=403))


def test_requests_are_listed_for_who_may_see_them(console: Console) -> None:
    run_of(console)
    asked = ask_to_wire(console.world, RUN, principal="agent")

    assert asked.id in text_of(console.client("approver"), url("approvals"))
    assert asked.id in text_of(console.client("agent"), url("approvals"))
    assert asked.id not in text_of(console.client("other_agent"), url("approvals"))
    cast_vote(approval_id=asked.id, voter=get_caller("approver"), decision="deny", reason="no", now=NOW)
    assert asked.id not in text_of(console.client("approver"), url("approvals"))
    assert asked.id in text_of(console.client("approver"), f"{url('approvals')}?state=all")
