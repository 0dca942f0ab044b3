"""The plain server over HTTP, and tools that go wrong in ways only HTTP knows; tells its port on standard output."""

import argparse
import json
import os
import queue
import sys
import threading
from collections.abc import Callable
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.gateway.mcp.servers.plain_server import Memory, Message, PlainServer

STATUSES = {f"http_{status}": status for status in (202, 302, 400, 401, 403, 404, 429, 500, 503)}
TOO_LARGE = 17 * 1024 * 1024
JSON = "application/json"
WHO = b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "who are you"}}'
BODIES: dict[str, Callable[[bytes], tuple[str, str, bytes]]] = {
    "html": lambda _: ("text/html", "identity", b"<html>"),
    "no_json": lambda _: (JSON, "identity", b"<html>"),
    "half_json": lambda whole: (JSON, "identity", whole[:20]),
    "null_id": lambda _: (JSON, "identity", WHO),
    "other_id": lambda whole: (JSON, "identity", whole.replace(b'"id": ', b'"id": 9')),
    "too_large": lambda whole: (JSON, "identity", whole + b" " * TOO_LARGE),
    "bad_gzip": lambda whole: (JSON, "gzip", whole),
}
# What servers answer to a session that they do not know any more.
FORGETTING = {
    "forgot_404": (404, -32001, "Session not found"),
    "forgot_404_invalid": (404, -32600, "Session has been terminated"),
    "forgot_400": (400, -32000, "Bad Request: No valid session ID provided"),
}
REFUSING = {"refused_401": (401, -32001, "Unauthorized"), "refused_400": (400, -32000, "Bad Request")}
SESSION = "Mcp-Session-Id"
WRONG = ("forget", *FORGETTING, *REFUSING, *STATUSES, *BODIES, "broken_off", "half_events", "hung_up")


class Handler(BaseHTTPRequestHandler):
    """One request; what it asks is answered as JSON, or as events when the server was started so."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __init__(self, *args: Any, memory: Memory, revision: str, style: str) -> None:
        self._memory, self._revision, self._style = memory, revision, style
        super().__init__(*args)

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._send(405, b"", "text/plain")

    def do_DELETE(self) -> None:
        self._send(405, b"", "text/plain")

    def do_POST(self) -> None:
        message: Message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message["headers"] = {name.lower(): value for name, value in self.headers.items()}
        tool = (message.get("params") or {}).get("name")
        if self.path != "/mcp":
            self._send(404, b"", "text/plain")
        elif "id" not in message or "method" not in message:
            self._memory.received.append(message)
            self._send(202, b"", "text/plain")
        elif self.headers.get(SESSION) in self._memory.forgotten:
            self._refuse(message, "forgot_404")
        elif message["method"] == "tools/call" and tool in {**FORGETTING, **REFUSING}:
            self._memory.received.append(message)
            self._refuse(message, tool)
        elif message["method"] == "tools/call" and tool in WRONG:
            self._memory.received.append(message)
            self._go_wrong(message, tool)
        else:
            self._answer(message)

    def _answer(self, message: Message) -> None:
        said: queue.SimpleQueue[Message] = queue.SimpleQueue()
        server = PlainServer(revision=self._revision, say=said.put, tools=WRONG, memory=self._memory)
        server.take(message)
        is_stream = self._style == "events" or message["method"] == "subscriptions/listen"
        if is_stream:
            self._send_events(message, said)
        else:
            self._send(200, json.dumps(said.get()).encode(), "application/json", session=self._session_of(message))

    def _session_of(self, message: Message) -> str | None:
        """Return the session that the message begins."""
        if message["method"] != "initialize":
            return None
        self._memory.sessions.append(f"session-{len(self._memory.sessions) + 1}")
        return self._memory.sessions[-1]

    def _send_events(self, message: Message, said: "queue.SimpleQueue[Message]") -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        each: Message = {}
        while each.get("id") != message["id"]:
            each = said.get()
            self.wfile.write(f"event: message\ndata: {json.dumps(each, ensure_ascii=False)}\n\n".encode())

    def _send(
        self, status: int, body: bytes, kind: str, *, encoding: str = "identity", session: str | None = None
    ) -> None:
        self.send_response(status)
        if session is not None:
            self.send_header(SESSION, session)
        self.send_header("Content-Encoding", encoding)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if status == 302:
            self.send_header("Location", "http://127.0.0.1:9/elsewhere")
        self.end_headers()
        self.wfile.write(body)

    def _refuse(self, message: Message, tool: str) -> None:
        """Refuse for good, or in the first session alone."""
        if tool in FORGETTING and self.headers.get(SESSION) != "session-1":
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}}
            self._send(200, json.dumps(answer).encode(), JSON)
            return
        status, number, said = {**FORGETTING, **REFUSING}[tool]
        error = {"jsonrpc": "2.0", "id": None, "error": {"code": number, "message": said}}
        self._send(status, json.dumps(error).encode(), JSON)

    def _go_wrong(self, message: Message, tool: str) -> None:
        whole = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}}).encode()
        if tool in BODIES:
            kind, encoding, body = BODIES[tool](whole)
            self._send(200, body, kind, encoding=encoding)
        elif tool == "forget":
            self._memory.forgotten.append(self.headers[SESSION])
            self._send(200, whole, JSON)
        elif tool in STATUSES:
            self._send(STATUSES[tool], b"<html>", "text/html")
        elif tool == "hung_up":
            self.close_connection = True
        else:
            self._break_off("application/json" if tool == "broken_off" else "text/event-stream", whole)

    def _break_off(self, kind: str, whole: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(whole) + 100))
        self.end_headers()
        self.wfile.write(whole[:10])
        self.close_connection = True


def end_with_the_starter() -> None:
    sys.stdin.read()
    os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--revision", default="2025-11-25")
    parser.add_argument("--style", choices=("json", "events"), default="json")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    handler = partial(Handler, memory=Memory(), revision=options.revision, style=options.style)
    server = ThreadingHTTPServer(("127.0.0.1", options.port), handler)
    server.daemon_threads = True
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    threading.Thread(target=end_with_the_starter, daemon=True).start()
    server.serve_forever()


main()
