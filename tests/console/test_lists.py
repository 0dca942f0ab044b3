"""What lists show, what they cost, and what is found."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from approvals.core.halts import HaltScope
from approvals.operations.halts import add_halt
from ledger.operations.runs import close_run
from tests.console.agents import (
    ask_to_wire,
    be_blocked,
    do,
    lose_answer,
    order,
    start_run,
)
from tests.console.conftest import Console
from tests.console.reading import NOW, RUN, run_of, text_of, url, words_of


def queries_of(client: Client, address: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        text_of(client, address)
    return len(captured)


@pytest.mark.parametrize("name", ["index", "runs", "approvals", "halts", "keys", "governance", "people"])
def test_lists_cost_the_same_however_long_they_are(console: Console, name: str) -> None:
    client = console.client("admin")
    run_of(console, "book")
    lose_answer(console.world, RUN, "lamp", principal="agent")
    ask_to_wire(console.world, RUN, principal="agent")
    before = queries_of(client, url(name))
    for number in range(4):
        run_of(console, f"a{number}", f"b{number}", run_id=f"run_more{number}")
        lose_answer(console.world, f"run_more{number}", f"c{number}", principal="agent")
        ask_to_wire(console.world, f"run_more{number}", principal="agent")
        add_halt(reason="more", scope=HaltScope(tool="none"), actor="operator", now=NOW)

    assert queries_of(client, url(name)) == before


@pytest.mark.parametrize("name", ["run", "plan", "report", "events", "rollback"])
def test_pages_of_a_run_cost_the_same_however_long_it_is(console: Console, name: str) -> None:
    client = console.client("admin")
    run_of(console, "book")
    before = queries_of(client, url(name, run_id=RUN))
    for number in range(5):
        order(console.world, RUN, f"more{number}", principal="agent")

    assert queries_of(client, url(name, run_id=RUN)) == before


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", {"run_a", "run_b", "run_c"}),
        ("?state=closed", {"run_b"}),
        ("?state=open", {"run_a", "run_c"}),
        ("?state=rolling_back", set()),
        ("?state=nonsense", {"run_a", "run_b", "run_c"}),
        ("?actor=billing-*", {"run_c"}),
        ("?actor=billing", set()),
        ("?attention=1", {"run_a"}),
        ("?q=quarterly", {"run_b"}),
        ("?q=order+lamp", {"run_a"}),
        ("?q=shop.tag", {"run_c"}),
        ("?q=run_b&state=open", {"run_b"}),
    ],
)
def test_runs_are_found(console: Console, query: str, found: set[str]) -> None:
    run_of(console, run_id="run_a")
    lose_answer(console.world, "run_a", "lamp", principal="agent")
    run_of(console, "book", run_id="run_b", reason="the Quarterly report")
    close_run(run_id="run_b", actor="agent", now=NOW)
    run_of(console, run_id="run_c", actor="billing-agent")
    do(console.world, "run_c", "shop.tag", {"id": "x", "tag": "y"}, principal="agent")

    answer = console.client("operator").get(url("runs") + query, follow=True)

    assert {run for run in ("run_a", "run_b", "run_c") if f"/runs/{run}/" in answer.content.decode()} == found


def test_an_agent_sees_its_own_runs_only(console: Console) -> None:
    run_of(console, run_id="run_mine")
    start_run(principal="other_agent", run_id="run_theirs")
    client = console.client("agent")

    for address in (url("index"), url("runs"), f"{url('runs')}?q=run_", f"{url('runs')}?q=run_theirs"):
        page = text_of(client, address)
        assert "run_theirs" not in page.replace('value="run_theirs"', "")
    assert "run_mine" in text_of(client, url("runs"))
    assert "belongs to another principal" in text_of(client, url("run", run_id="run_theirs"), status=403)


def test_runs_are_paged_both_ways(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reversi_site.console.pages.runs.RUNS_SHOWN", 2)
    for number in range(5):
        run_of(console, run_id=f"run_{number}", now=NOW + timedelta(minutes=number))
    client, seen, address = console.client("operator"), [], url("runs")
    while address:
        page = text_of(client, address)
        seen.append(sorted(set(re.findall(r"run_\d", page)), reverse=True))
        older = re.search(r'href="(\?[^"]*after=[^"]*)"', page)
        address = url("runs") + unescape(older[1]) if older else ""
    newer = re.search(r'href="(\?[^"]*before=[^"]*)"', page)
    assert newer

    assert seen == [["run_4", "run_3"], ["run_2", "run_1"], ["run_0"]]
    assert re.findall(r">(run_\d)<", text_of(client, url("runs") + unescape(newer[1]))) == ["run_2", "run_1"]
    assert "run_4" in text_of(client, f"{url('runs')}?after=nonsense")


def test_a_long_run_is_shown_in_pieces(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reversi_site.console.pages.runs.STEPS_SHOWN", 2)
    run_of(console, "a", "b", "c")
    be_blocked(console.world, RUN, "files.wipe", {}, principal="agent")
    client, address = console.client("auditor"), url("run", run_id=RUN)

    first, second = text_of(client, address), text_of(client, f"{address}?from=2")

    assert re.findall(r'id="step-(\d)"', first) == ["0", "1"]
    assert "Run opened" in first
    assert "Call blocked" not in first
    assert re.findall(r'id="step-(\d)"', second) == ["2"]
    assert "Run opened" not in second
    assert "no manifest for files.wipe" in words_of(second)
