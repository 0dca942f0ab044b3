"""Settling steps by hand, and closing runs."""

from __future__ import annotations

import pytest

from ledger.core.statuses import RunState, StepState
from ledger.queries import get_run, get_step, list_events
from rollback.operations.execution import run_foreground
from tests.console.agents import (
    lose_answer,
)
from tests.console.conftest import Console
from tests.console.reading import RUN, next_page, post, run_of, text_of, url, words_of
from tests.console.world import BROKEN, tools


def test_an_uncertain_step_is_settled_with_its_result(console: Console) -> None:
    run_of(console)
    lose_answer(console.world, RUN, "lamp", principal="agent")
    client, address = console.client("operator"), url("resolve", run_id=RUN, number=0)

    page = next_page(
        client, address, {"status": "succeeded", "result": '{"id": "shop-order-lamp"}', "note": "found it in the list"}
    )

    assert "Step 0 is now succeeded." in page
    assert "settled by a person" in page
    assert "Will call shop.cancel" in page
    event = next(event for event in list_events(RUN) if event.kind == "resolved_succeeded")
    assert event.actor == "operator"
    assert event.data is not None
    assert event.data["note"] == "found it in the list"


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ({"status": "succeeded", "result": "{bad", "note": "n"}, "result:1:2"),
        ({"status": "succeeded", "result": '{"a": 1, "a": 2}', "note": "n"}, "result:1"),
        ({"status": "succeeded", "result": "NaN", "note": "n"}, "result:1"),
        ({"status": "failed", "result": "{}", "note": "n"}, "A result belongs to a call that took effect"),
        ({"status": "failed", "note": ""}, "This field is required"),
        ({"status": "failed", "note": "   "}, "This field is required"),
        ({"status": "compensated", "note": "n"}, "not one of the available choices"),
        ({"note": "n"}, "This field is required"),
    ],
)
def test_settling_needs_a_note_and_fitting_words(console: Console, sent: dict[str, str], told: str) -> None:
    run_of(console)
    lose_answer(console.world, RUN, "lamp", principal="agent")

    page = post(console.client("operator"), url("resolve", run_id=RUN, number=0), sent, status=400)

    assert told in words_of(page)
    assert get_step(RUN, 0).state is StepState.UNCERTAIN


def test_a_step_undone_by_hand_is_read_back_first(console: Console) -> None:
    run_of(console, BROKEN)
    run_foreground(run_id=RUN, tools=tools(), actor="operator")
    client, address = console.client("operator"), url("resolve", run_id=RUN, number=0)
    sent = {"status": "compensated", "note": "cancelled it in the warehouse"}

    refused = words_of(post(client, address, sent, status=409))
    console.world.put(f"shop-order-{BROKEN}", state="gone")
    page = next_page(client, address, sent)

    assert "does not look undone" in refused
    assert "Step 0 is now compensated." in page
    assert "undone by hand" in page
    assert "read back and confirmed" in page


def test_a_step_that_needs_no_settling_offers_none(console: Console) -> None:
    run_of(console, "a")
    client = console.client("operator")

    page = text_of(client, url("resolve", run_id=RUN, number=0))

    assert "This step needs no settling" in page
    assert "<textarea" not in page
    assert "Settle by hand" not in text_of(client, url("step", run_id=RUN, number=0))
    post(client, url("resolve", run_id=RUN, number=0), {"status": "failed", "note": "n"}, status=400)


@pytest.mark.parametrize("number", [7, 10**12])
def test_a_step_that_is_none_is_not_found(console: Console, number: int) -> None:
    run_of(console, "a")

    assert "has no step" in text_of(console.client("operator"), url("step", run_id=RUN, number=number), status=404)


def test_a_run_is_closed_once(console: Console) -> None:
    run_of(console, "a")
    client = console.client("agent")
    assert "Close run" in text_of(client, url("run", run_id=RUN))

    page = next_page(client, url("close", run_id=RUN), {})

    assert "The run is closed." in page
    assert "Close run" not in page
    assert get_run(RUN).state is RunState.CLOSED
