"""A live server: what slow, broken and greedy clients do to the others, which is nothing."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from reversi_site.kit.api.documents import BODY_LIMIT
from reversi_site.serving import THREADS
from tests.api.server import Server, live_server
from tests.api.world import World
from tests.databases import Database

HEAD = "POST /v1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
BODY = b'{"scope":[]}'


@pytest.fixture
def server(world: World, sqlite_db: Database, shop: Path) -> Iterator[Server]:
    with live_server(sqlite_db, manifests=shop) as running:
        yield running


def is_quick(server: Server) -> bool:
    started = time.monotonic()
    return requests.get(f"{server.url}/healthz", timeout=10).status_code == 200 and time.monotonic() - started < 5


def head(world: World, *lines: str) -> bytes:
    return (HEAD + f"Authorization: Bearer {world.keys['agent']}\r\n" + "".join(f"{x}\r\n" for x in lines)).encode()


def answer_of(connection: socket.socket) -> bytes:
    connection.settimeout(30)
    found = b""
    while piece := connection.recv(65536):
        found += piece
    return found


def test_clients_that_never_finish_hold_up_nobody(world: World, server: Server) -> None:
    stages = (b"", b"GET /v1/runs HT", head(world), head(world, "Content-Length: 12") + b"\r\n{", head(world) + b"X: ")
    connections = [server.connect() for _ in range(3 * THREADS)]
    for number, connection in enumerate(connections):
        connection.sendall(stages[number % len(stages)])

    assert is_quick(server)
    assert server.post("runs", {"scope": []}, token=world.keys["agent"]).status_code == 201
    for connection in connections:
        connection.close()
    assert is_quick(server)


def test_request_that_comes_byte_by_byte_is_served(world: World, server: Server) -> None:
    whole = head(world, f"Content-Length: {len(BODY)}", "Connection: close") + b"\r\n" + BODY
    with server.connect() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in whole:
            connection.sendall(bytes([byte]))
        answer = answer_of(connection)

    assert answer.startswith(b"HTTP/1.1 201 Created")


NO_REQUESTS = (
    b"\x16\x03\x01\x02\x00\x01\x00",
    b"\x00" * 1000,
    b"GET / HTTP/9.9\r\n\r\n",
    b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
    b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
    b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
    b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
    b"GET /" + b"a" * 300_000 + b" HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 50_000 + b"\r\n",
)


def test_what_is_no_request_ends_its_connection_only(server: Server) -> None:
    for sent in NO_REQUESTS:
        with server.connect() as connection:
            try:
                connection.sendall(sent)
                answer_of(connection)
            except ConnectionError:
                assert is_quick(server)
        assert is_quick(server), sent[:100]


def test_client_that_goes_in_the_middle_leaves_nothing_behind(world: World, server: Server) -> None:
    for _ in range(THREADS * 2):
        with server.connect() as connection:
            connection.sendall(head(world, "Content-Length: 1000") + b"\r\n{")

    assert is_quick(server)
    assert requests.get(f"{server.url}/v1/runs", headers=bearer(world), timeout=10).json()["results"] == []


def bearer(world: World) -> dict[str, str]:
    return {"Authorization": f"Bearer {world.keys['agent']}"}


def pieces(total: int) -> Iterator[bytes]:
    for start in range(0, total, 65536):
        yield b" " * min(65536, total - start)


def test_chunked_body_is_taken_up_to_the_limit(world: World, server: Server) -> None:
    token = world.keys["agent"]

    fits = server.post("runs", iter([*pieces(BODY_LIMIT - len(BODY)), BODY]), token=token)
    assert fits.status_code == 201
    assert refused_for_its_size(server, iter([*pieces(BODY_LIMIT), BODY]), token)
    assert is_quick(server)


def refused_for_its_size(server: Server, body: Iterator[bytes], token: str) -> bool:
    try:
        answer = server.post("runs", body, token=token)
    except requests.ConnectionError:
        # The server has answered and closed while the rest was still being sent.
        return True
    return answer.status_code == 413 and answer.json()["code"] == "body_too_large"


def test_declared_length_beyond_the_limit_is_refused_at_once(world: World, server: Server) -> None:
    with server.connect() as connection:
        connection.sendall(head(world, f"Content-Length: {BODY_LIMIT + 1}") + b"\r\n")
        answer = answer_of(connection)

    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b'"code": "body_too_large"' in answer


def test_client_that_waits_to_be_asked_for_its_body_is_asked(world: World, server: Server) -> None:
    with server.connect() as connection:
        lines = (f"Content-Length: {len(BODY)}", "Expect: 100-continue", "Connection: close")
        connection.sendall(head(world, *lines) + b"\r\n")
        connection.settimeout(10)
        assert connection.recv(1000).startswith(b"HTTP/1.1 100 Continue\r\n")
        connection.sendall(BODY)
        answer = answer_of(connection)

    assert answer.startswith(b"HTTP/1.1 201 Created")


def test_two_requests_at_once_on_one_connection_are_both_answered(world: World, server: Server) -> None:
    one = head(world, f"Content-Length: {len(BODY)}") + b"\r\n" + BODY
    last = head(world, f"Content-Length: {len(BODY)}", "Connection: close") + b"\r\n" + BODY
    with server.connect() as connection:
        connection.sendall(one + last)
        answer = answer_of(connection)

    assert answer.count(b"HTTP/1.1 201 Created") == 2


def test_connection_is_kept_for_the_next_request(world: World, server: Server) -> None:
    with requests.Session() as session:
        answers = [session.get(f"{server.url}/v1/runs", headers=bearer(world), timeout=10) for _ in range(5)]

    assert {answer.status_code for answer in answers} == {200}


def test_of_many_that_repeat_a_request_at_once_one_is_worked_on(world: World, server: Server) -> None:
    headers = {**bearer(world), "Idempotency-Key": "k1", "Content-Type": "application/json"}

    def post(_: int) -> requests.Response:
        return requests.post(f"{server.url}/v1/runs", data=BODY, headers=headers, timeout=60)

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(post, range(32)))

    runs = requests.get(f"{server.url}/v1/runs", headers=bearer(world), timeout=10).json()["results"]
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert {answer.json()["id"] for answer in answers if answer.status_code == 201} == {run["id"] for run in runs}
    assert len(runs) == 1


def test_server_says_nothing_about_keys(world: World, server: Server) -> None:
    server.post("runs", {"nope": 1}, token=world.keys["agent"])
    server.post("runs", b"{", token=world.keys["revoked"])

    log = server.log.read_text()
    assert not any(key in log for key in world.keys.values())
