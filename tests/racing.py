"""Child processes that act at the same moment: each says that it is ready, and starts when told to.

A child reads one JSON line of orders, prints `ready`, waits for a line, lets its threads start together, and prints one
JSON line of how what they did ended.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from threading import Barrier, Thread
from typing import Any

from tests.databases import Database

Endings = list[str]


def race(*, db: Database, module: str, processes: int, orders: Mapping[str, Any]) -> Endings:
    """Run the module in so many processes with the same orders; returns how everything ended."""
    with ExitStack() as stack:
        children = [stack.enter_context(_start(db, module)) for _ in range(processes)]
        for child in children:
            _tell(child, json.dumps(orders))
        for child in children:
            assert _hear(child) == "ready"
        for child in children:
            _tell(child, "go")
        return [ending for child in children for ending in json.loads(_hear(child))]


def _start(db: Database, module: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", module]
    return subprocess.Popen(command, env=db.env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _tell(child: subprocess.Popen[str], line: str) -> None:
    assert child.stdin is not None
    print(line, file=child.stdin, flush=True)


def _hear(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    line = child.stdout.readline().strip()
    assert line, "a child died"
    return line


def run_child(caller: Callable[[dict[str, Any], Barrier, Endings], None]) -> None:
    """Be a child: run `caller` in as many threads as the orders say."""
    import django

    django.setup()
    orders = json.loads(sys.stdin.readline())
    start = Barrier(orders["threads"] + 1)
    endings: Endings = []
    threads = [Thread(target=caller, args=(orders, start, endings)) for _ in range(orders["threads"])]
    for thread in threads:
        thread.start()
    _say("ready")
    sys.stdin.readline()
    start.wait()
    for thread in threads:
        thread.join()
    _say(json.dumps(endings))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
