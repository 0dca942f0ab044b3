"""Calls that wait for people."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from reversi_sdk import ApprovalRequired, CallBlocked, Client, Run
from tests.sdk_client.downstream import Shop
from tests.sdk_client.servers import Server

Connect = Callable[..., Client]
PAY = {"amount": 700}


@pytest.fixture
def run(server: Server, keys: dict[str, str], connect: Connect) -> Run:
    return connect(server.url, keys["agent"]).run(actor="buyer", scope=["shop:*"])


@pytest.fixture
def cfo(server: Server, keys: dict[str, str], connect: Connect) -> Client:
    return connect(server.url, keys["cfo"])


def when_asked(cfo: Client, answer: Callable[[str], object]) -> threading.Thread:
    """Answer the first request for approval, from another thread."""
    asked = threading.Event()

    def wait_and_answer() -> None:
        while not asked.wait(0.05):
            for approval in cfo.approvals():
                answer(approval["id"])
                asked.set()

    thread = threading.Thread(target=wait_and_answer)
    thread.start()
    return thread


def test_a_call_that_waits_raises_with_the_approval_and_passes_once_approved(run: Run, cfo: Client, shop: Shop) -> None:
    with pytest.raises(ApprovalRequired) as required:
        run.call("shop.pay", PAY, execute=shop.order)
    assert (required.value.approval["state"], shop.effects["order"]) == ("pending", 0)

    cfo.approve(required.value.approval["id"], reason="in the budget")

    assert run.call("shop.pay", PAY, execute=shop.order) == {"id": "o0"}
    assert cfo.approval(required.value.approval["id"])["state"] == "used"
    with pytest.raises(ApprovalRequired):
        run.call("shop.pay", PAY, execute=shop.order)


def test_a_waiting_call_is_made_as_soon_as_it_is_approved(run: Run, cfo: Client, shop: Shop) -> None:
    person = when_asked(cfo, cfo.approve)

    made = run.perform("shop.pay", PAY, execute=shop.order, wait=True)
    person.join()

    assert (made.result, made.state, shop.effects["order"]) == ({"id": "o0"}, "succeeded", 1)


def test_a_waiting_call_that_is_denied_is_blocked_with_the_reason(run: Run, cfo: Client, shop: Shop) -> None:
    person = when_asked(cfo, lambda approval: cfo.deny(approval, reason="too much"))

    with pytest.raises(CallBlocked, match="approval denied: too much"):
        run.call("shop.pay", PAY, execute=shop.order, wait=30)
    person.join()

    assert shop.effects["order"] == 0


def test_a_wait_ends_when_nobody_answers(run: Run, shop: Shop) -> None:
    with pytest.raises(ApprovalRequired) as required:
        run.call("shop.pay", PAY, execute=shop.order, wait=0.5)

    assert required.value.approval["state"] == "pending"
