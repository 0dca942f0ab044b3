"""Answers that get lost, servers that die and servers that are slow: nothing is done twice and nothing is claimed."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from reversi_sdk import Client, OutcomeNotReported, Patience, ServerUnreachable
from tests.sdk_client.downstream import Shop
from tests.sdk_client.proxies import losing_proxy
from tests.sdk_client.servers import Server

SCOPE = ("shop:*",)
Connect = Callable[..., Client]
HASTY = Patience(ordinary_ms=600, important_ms=600)


def first_time(*endings: str) -> Callable[[str], bool]:
    """Lose the first answer to each route of a kind."""
    seen: Counter[str] = Counter()

    def loses(line: str) -> bool:
        path = line.split()[1]
        seen[path] += 1
        return path.endswith(endings) and seen[path] == 1

    return loses


def test_lost_answers_are_asked_for_again_and_nothing_happens_twice(
    any_server: Server, keys: dict[str, str], connect: Connect, shop: Shop
) -> None:
    with losing_proxy(any_server.port, first_time("/runs", "/calls", "/complete", "/close")) as proxy:
        client = connect(proxy.url, keys["agent"])
        run = client.run(scope=SCOPE)
        run.call("shop.order", {"item": "book"}, execute=shop.order)
        run.close()

    assert [line.split()[1].rpartition("/")[2] for line in proxy.lost] == ["runs", "calls", "complete", "close"]
    assert shop.effects["order"] == 1
    told = connect(any_server.url, keys["agent"])
    assert [each["id"] for each in told.runs()] == [run.id]
    assert [step["state"] for step in told.existing_run(run.id).steps()] == ["succeeded"]


def test_an_outcome_that_cannot_be_told_is_raised_with_the_result(
    server: Server, keys: dict[str, str], connect: Connect, shop: Shop
) -> None:
    run = connect(server.url, keys["agent"], patience=HASTY).run(scope=SCOPE)

    def order(args: dict[str, Any]) -> dict[str, Any]:
        server.leave()
        return shop.order(args)

    with pytest.raises(OutcomeNotReported, match="do not repeat it") as raised:
        run.call("shop.order", {"item": "book"}, execute=order)

    assert (raised.value.result, raised.value.step) == ({"id": "o0"}, 0)
    assert "stays intended" in raised.value.__notes__[0]
    server.come_back()
    again = connect(server.url, keys["agent"]).run(run.id, scope=SCOPE)
    assert again.step(0)["state"] == "intended"
    assert again.reconcile(lambda step: {"status": "succeeded", "result": {"id": "o0"}})["settled"] == [
        {"step": 0, "state": "succeeded"}
    ]
    assert again.plan()["actions"][0]["args"] == {"id": "o0"}


def test_a_server_that_comes_back_is_told_what_happened_meanwhile(
    server: Server, keys: dict[str, str], connect: Connect, shop: Shop
) -> None:
    run = connect(server.url, keys["agent"]).run(scope=SCOPE)

    def order(args: dict[str, Any]) -> dict[str, Any]:
        server.kill()
        threading.Timer(0.5, server.start).start()
        return shop.order(args)

    run.call("shop.order", {"item": "book"}, execute=order)

    assert run.step(0)["state"] == "succeeded"


def test_a_silent_server_is_given_up(connect: Connect) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = connect(f"http://127.0.0.1:{silent.getsockname()[1]}", "rk_a_b", timeout=0.2, patience=HASTY)

        with pytest.raises(ServerUnreachable, match="no answer after") as raised:
            client.runs()

    assert "rk_a_b" not in str(raised.value)


def test_an_answer_that_drips_is_given_up(connect: Connect) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        stop = threading.Event()

        def drip() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
                while not stop.wait(0.05):
                    try:
                        connection.sendall(b" " * 70_000)
                    except OSError:
                        return

        dripping = threading.Thread(target=drip)
        dripping.start()
        patience = Patience(ordinary_ms=0, important_ms=0)
        client = connect(f"http://127.0.0.1:{listening.getsockname()[1]}", "rk_a_b", timeout=0.5, patience=patience)
        with pytest.raises(ServerUnreachable, match="ReadTimeout"):
            client.runs()
        stop.set()
        dripping.join()


def test_a_refused_connection_is_named_without_the_key(connect: Connect) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

    with pytest.raises(ServerUnreachable, match="ConnectionError") as raised:
        connect(f"http://127.0.0.1:{port}", "rk_a_b", patience=HASTY).runs()

    assert "rk_a_b" not in repr(raised.value.__cause__)
