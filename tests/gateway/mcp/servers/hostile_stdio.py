"""A server that makes the handshake of 2025-06-18 and then behaves as badly as the name of the called tool says.

With `--start` it does not even come so far. `--calls` names a file that gets a line for each call that arrived.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.gateway.mcp.servers.pids import note_pid

Message = dict[str, Any]

REVISION = "2025-06-18"
ENDLESS = 1 << 16


def say(message: Message) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def result(request: Message, result: Any) -> None:
    say({"jsonrpc": "2.0", "id": request["id"], "result": result})


def fine(request: Message) -> None:
    result(request, {"content": [{"type": "text", "text": str(os.getpid())}]})


def garbage(_request: Message) -> None:
    sys.stdout.write('{"jsonrpc": "2.0", "id"\n')
    sys.stdout.flush()


def garbage_then_fine(request: Message) -> None:
    for _ in range(100):
        garbage(request)
    fine(request)


def garbage_flood(request: Message) -> None:
    for _ in range(5000):
        garbage(request)
    fine(request)


def not_text(request: Message) -> None:
    sys.stdout.buffer.write(b"\xff\xfe\x00\n")
    sys.stdout.buffer.flush()
    fine(request)


def deep(request: Message) -> None:
    sys.stdout.write(f'{{"jsonrpc": "2.0", "id": {request["id"]}, "result": {"[" * 50000}{"]" * 50000}}}\n')
    sys.stdout.flush()


def not_finite(request: Message) -> None:
    sys.stdout.write(f'{{"jsonrpc": "2.0", "id": {request["id"]}, "result": {{"content": [], "n": 1e999}}}}\n')
    sys.stdout.flush()


def surrogate(request: Message) -> None:
    sys.stdout.write(f'{{"jsonrpc": "2.0", "id": {request["id"]}, "result": {{"content": [], "n": "\\ud800"}}}}\n')
    sys.stdout.flush()


def number(request: Message) -> None:
    result(request, 42)


def no_result_of_a_call(request: Message) -> None:
    result(request, {"content": "text"})


def unknown_id(request: Message) -> None:
    say({"jsonrpc": "2.0", "id": 987654, "result": {"content": []}})
    say({"jsonrpc": "2.0", "id": "someone-else", "result": {"content": []}})
    say({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "who?"}})
    fine(request)


def wrong_id_type(request: Message) -> None:
    say({"jsonrpc": "2.0", "id": [request["id"]], "result": {"content": []}})


def twice(request: Message) -> None:
    fine(request)
    fine(request)


def endless_line(_request: Message) -> None:
    while True:
        sys.stdout.write("x" * ENDLESS)


def notification_flood(request: Message) -> None:
    for at in range(20_000):
        say({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": at}})
        say({"jsonrpc": "2.0", "method": "notifications/unheard", "params": {"of": at}})
        say({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": at, "progress": "x"}})
    fine(request)


def stderr_flood(request: Message) -> None:
    for _ in range(2000):
        sys.stderr.write("y" * 10_000)
    sys.stderr.write("\nthe end of it\n")
    sys.stderr.flush()
    fine(request)


def asks_us(request: Message) -> None:
    answers: list[Any] = []
    for at, method in enumerate(("sampling/createMessage", "roots/list", "elicitation/create", "made/up", "ping")):
        params = {"messages": [], "maxTokens": 1} if method.startswith("sampling") else {}
        say({"jsonrpc": "2.0", "id": f"ask-{at}", "method": method, "params": params})
        answers.append(json.loads(sys.stdin.readline()))
    result(request, {"content": [], "structuredContent": {"answers": answers}})


def request_flood(_request: Message) -> None:
    """Ask without end and read no answer."""
    at = 0
    while True:
        say({"jsonrpc": "2.0", "id": f"flood-{at}", "method": "ping"})
        at += 1


def deaf(_request: Message) -> None:
    """Read nothing any more."""
    while True:
        time.sleep(60)


def silent(_request: Message) -> None:
    """Leave this one call without an answer."""


def die(_request: Message) -> None:
    sys.stderr.write("first words\nthe disk is full\n")
    sys.stderr.flush()
    os._exit(3)


def answer_and_die(request: Message) -> None:
    fine(request)
    os._exit(4)


def half_an_answer_and_die(request: Message) -> None:
    sys.stdout.write(f'{{"jsonrpc": "2.0", "id": {request["id"]}, "result": {{"content"')
    sys.stdout.flush()
    os._exit(5)


def close_output(_request: Message) -> None:
    os.close(1)
    deaf(_request)


def grandchild(request: Message) -> None:
    """Leave a process behind that has our pipes and will not end by itself."""
    program = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    child = subprocess.Popen([sys.executable, "-c", program])
    result(request, {"content": [{"type": "text", "text": str(child.pid)}]})


TOOLS: dict[str, Callable[[Message], None]] = {
    function.__name__: function
    for function in (
        fine, garbage, garbage_then_fine, garbage_flood, not_text, deep, not_finite, surrogate, number,
        no_result_of_a_call, unknown_id, wrong_id_type, twice, endless_line, notification_flood, stderr_flood, asks_us,
        request_flood, deaf, silent, die, answer_and_die, half_an_answer_and_die, close_output, grandchild,
    )
}  # fmt: skip


def start_badly(how: str | None) -> None:
    if how == "exit":
        sys.stderr.write("no such database\n")
        sys.stderr.flush()
        os._exit(7)
    if how == "silent":
        deaf({})
    if how == "chatter":
        while True:
            sys.stdout.write("Listening on everything!\n")


def handshake(request: Message, *, is_fatal: bool) -> None:
    if request["method"] == "initialize":
        info = {"name": "hostile", "version": "1"}
        result(request, {"protocolVersion": REVISION, "capabilities": {"tools": {}}, "serverInfo": info})
    elif request["method"] == "tools/list":
        result(request, {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]})
    elif request["method"] == "ping":
        result(request, {})
    elif is_fatal:
        os._exit(9)
    else:
        say({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no such method"}})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--start")
    parser.add_argument("--calls")
    parser.add_argument("--pid-file")
    parser.add_argument("--stays", action="store_true", help="end neither with the input nor for SIGTERM")
    options = parser.parse_args()
    note_pid(options.pid_file)
    if options.stays:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    start_badly(options.start)
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        if message["method"] != "tools/call":
            handshake(message, is_fatal=options.start == "unknown_is_fatal")
            continue
        if options.calls:
            with Path(options.calls).open("a", encoding="utf-8") as calls:
                calls.write(message["params"]["name"] + "\n")
        TOOLS[message["params"]["name"]](message)
    if options.stays:
        deaf({})


main()
