"""Child processes that make calls at the same moment: each says that it is ready, and starts when told to.

Run as a program: reads one JSON line of orders, prints `ready`, waits for a line, makes its calls from many threads
that start together, and prints one JSON line of what became of them.
"""

import json
import subprocess
import sys
from contextlib import ExitStack
from threading import Barrier, Thread
from typing import Any

from tests.databases import Database

Endings = list[str]


def race(*, db: Database, processes: int, threads: int, calls: int, key: str | None) -> Endings:
    """Make processes x threads x calls calls, all threads starting together; returns how each ended."""
    orders = json.dumps({"threads": threads, "calls": calls, "key": key})
    with ExitStack() as stack:
        children = [stack.enter_context(_start(db)) for _ in range(processes)]
        for child in children:
            _tell(child, orders)
        for child in children:
            assert _hear(child) == "ready"
        for child in children:
            _tell(child, "go")
        return [ending for child in children for ending in json.loads(_hear(child))]


def _start(db: Database) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.gateway.racing"],
        env=db.env(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _tell(child: subprocess.Popen[str], line: str) -> None:
    assert child.stdin is not None
    print(line, file=child.stdin, flush=True)


def _hear(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    line = child.stdout.readline().strip()
    assert line, "a child died"
    return line


def _run_child() -> None:
    import django

    django.setup()
    orders = json.loads(sys.stdin.readline())
    start = Barrier(orders["threads"] + 1)
    endings: Endings = []
    threads = [Thread(target=_caller, args=(orders, start, endings)) for _ in range(orders["threads"])]
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


def _caller(orders: dict[str, Any], start: Barrier, endings: Endings) -> None:
    from django.db import connections

    from tests.approvals.factories import make_run

    run_id = make_run().id
    start.wait()
    endings.extend(_ending(run_id, orders["key"]) for _ in range(orders["calls"]))
    connections.close_all()


def _ending(run_id: str, key: str | None) -> str:
    from approvals.core.errors import CallBlocked
    from tests.approvals.factories import ARGS, codes
    from tests.gateway.factories import Tool, make_call
    from tests.manifests_registry.factories import shop

    snapshot = shop() if key is None else shop(idempotency={"key": "order-{{args.order}}", "scope": "global"})
    try:
        make_call(run_id=run_id, execute=Tool({"id": "o1"}), args={**ARGS, "order": key or "o"}, snapshot=snapshot)
    except CallBlocked as blocked:
        return ",".join(codes(blocked))
    except Exception as error:  # noqa: BLE001  # whatever it is, the parent must hear of it
        return repr(error)
    return "passed"


if __name__ == "__main__":
    _run_child()
