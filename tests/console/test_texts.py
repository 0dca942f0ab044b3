"""Texts that are not ours: of agents, tools and secrets."""

from __future__ import annotations

import re
from typing import Any

from django.urls import reverse

from approvals.core.halts import HaltScope
from approvals.operations.approvals import cast_vote
from approvals.operations.halts import add_halt
from approvals.queries import get_caller
from reversi_site.console.security import HEADER, POLICY
from tests.console.agents import (
    HOSTILE,
    VISIBLE,
    ask_to_wire,
    be_blocked,
    do,
    lose_answer,
)
from tests.console.conftest import Console
from tests.console.reading import NOW, RUN, post, run_of, text_of, url

STEERING = re.compile("[\u202a-\u202e\u2066-\u2069\x00-\x08\x1b]")


def plant(console: Console) -> list[str]:
    """Leave hostile text wherever anybody can, and return the pages that show some of it."""
    world = console.world
    fields: dict[str, Any] = {"actor": HOSTILE, "tenant": HOSTILE, "environment": HOSTILE, "labels": {HOSTILE: HOSTILE}}
    run_of(console, "a", reason=HOSTILE, mode="observe", **fields)
    do(world, RUN, "shop.tag", {"id": "x", "tag": HOSTILE}, principal="agent")
    do(world, RUN, "shop.pin", {"id": "x", "note": HOSTILE}, principal="agent")
    lose_answer(world, RUN, "lamp", principal="agent")
    run_of(console, run_id="run_asks", reason=HOSTILE)
    be_blocked(world, "run_asks", "shop.none", {"x": HOSTILE}, principal="agent")
    asked = ask_to_wire(world, "run_asks", principal="agent", reason=HOSTILE, iban=HOSTILE)
    add_halt(reason=HOSTILE, scope=HaltScope(tool="x*", actor=HOSTILE), actor="operator", now=NOW)
    operator = console.client("operator")
    post(operator, url("resolve", run_id=RUN, number=3), {"status": "failed", "note": HOSTILE})
    runs = ("run", "plan", "events", "report", "rollback")
    return [
        *(url(name) for name in ("index", "runs", "approvals", "halts", "governance", "records")),
        *(url(name, run_id=run_id) for name in runs for run_id in (RUN, "run_asks")),
        *(url("step", run_id=RUN, number=number) for number in range(4)),
        url("approval", approval_id=asked.id),
        reverse("admin:ledger_run_changelist"),
        reverse("admin:ledger_run_change", args=[RUN]),
        reverse("admin:ledger_step_changelist"),
        reverse("admin:approvals_halt_changelist"),
        f"{url('runs')}?q={HOSTILE}",
    ]


def test_text_of_agents_is_shown_as_text(console: Console) -> None:
    addresses = plant(console)
    client = console.client("admin")
    pages = {address: text_of(client, address) for address in addresses}

    assert {address for address, page in pages.items() if "<script>alert" in page} == set()
    assert {address for address, page in pages.items() if STEERING.search(page)} == set()
    telling = [page for page in pages.values() if VISIBLE in page]
    assert len(telling) > len(pages) * 0.6


INLINE = re.compile(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son[a-z]+=|javascript:", re.IGNORECASE)


def test_pages_hold_nothing_that_their_policy_forbids(console: Console) -> None:
    addresses = [*plant(console), url("keys"), url("key_create"), url("people"), url("password_change"), "/nothing"]
    client = console.client("admin")

    for address in addresses:
        answer = client.get(address)
        page = re.sub(r"&lt;.*?&gt;", "", answer.content.decode())
        assert answer.headers[HEADER] == POLICY, address
        assert INLINE.findall(page) == [], address
        assert re.findall(r'(?:src|href|action)="(?:https?:)?//', page) == [], address
        assert "no-store" in answer.headers.get("Cache-Control", "no-store"), address


def test_what_is_redacted_is_on_no_page(console: Console) -> None:
    run_of(console)
    asked = ask_to_wire(console.world, RUN, principal="agent", pin="4711-top-secret")
    cast_vote(approval_id=asked.id, voter=get_caller("approver"), decision="approve", now=NOW)
    args = {"amount": 125_000, "iban": "DE02 1203 0000 0000 2020 51", "pin": "4711-top-secret"}
    do(console.world, RUN, "shop.wire", args, principal="agent")
    client = console.client("admin")
    addresses = [url(name, run_id=RUN) for name in ("run", "plan", "events", "report", "rollback")]
    addresses += [url("approval", approval_id=asked.id), url("step", run_id=RUN, number=0), url("governance")]
    addresses += [reverse("admin:ledger_step_change", args=[1]), reverse("admin:ledger_event_changelist")]

    for address in addresses:
        assert "4711-top-secret" not in text_of(client, address), address
