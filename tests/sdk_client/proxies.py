"""A proxy between client and server that loses answers: the server has answered, and the client never hears of it."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

END = b"\r\n\r\n"


@dataclass(slots=True)
class Losing:
    """Which answers are lost: those to requests for which `loses` is true, given the request line and its number."""

    loses: Callable[[str], bool]
    url: str = ""
    lost: list[str] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)


@contextmanager
def losing_proxy(port: int, loses: Callable[[str], bool]) -> Iterator[Losing]:
    """Give a proxy for the server on `port`; each connection carries one request."""
    losing = Losing(loses)

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            _relay(self.request, port, losing)

    class Proxy(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Proxy(("127.0.0.1", 0), Handler) as proxy:
        losing.url = f"http://127.0.0.1:{proxy.server_address[1]}"
        thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield losing
        finally:
            proxy.shutdown()
            thread.join()


def _relay(client: socket.socket, port: int, losing: Losing) -> None:
    request = _message(client)
    if not request:
        return
    line = request.split(b"\r\n", 1)[0].decode()
    head, _, body = request.partition(END)
    with socket.create_connection(("127.0.0.1", port)) as server:
        server.sendall(head.replace(b"Connection: keep-alive", b"Connection: close") + END + body)
        answer = _whole(server)
    if losing.loses(line):
        losing.lost.append(line)
        return
    losing.passed.append(line)
    client.sendall(answer)


def _message(connection: socket.socket) -> bytes:
    data = b""
    while END not in data:
        part = connection.recv(65536)
        if not part:
            return b""
        data += part
    head, _, body = data.partition(END)
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    missing = int(lengths[0].split(b":")[1]) - len(body) if lengths else 0
    while missing > 0:
        part = connection.recv(65536)
        data, missing = data + part, missing - len(part)
    return data


def _whole(connection: socket.socket) -> bytes:
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)
