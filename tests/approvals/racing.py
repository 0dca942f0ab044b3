"""Child processes that make the same approved call at the same moment, each from many threads.

Run as a program: reads one JSON line of orders, prints `ready`, waits for a line, lets its threads start together, and
prints one JSON line of what became of their calls.
"""

import json
import subprocess
import sys
from contextlib import ExitStack
from threading import Barrier, Thread

from tests.databases import Database

Endings = list[str]


def race(*, db: Database, run_id: str, processes: int, threads: int) -> Endings:
    """Make processes x threads equal calls of the run; returns how each ended."""
    orders = json.dumps({"run_id": run_id, "threads": threads})
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
    command = [sys.executable, "-m", "tests.approvals.racing"]
    return subprocess.Popen(command, env=db.env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


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
    threads = [Thread(target=_caller, args=(orders["run_id"], start, endings)) for _ in range(orders["threads"])]
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


def _caller(run_id: str, start: Barrier, endings: Endings) -> None:
    from django.db import connections

    start.wait()
    endings.append(_ending(run_id))
    connections.close_all()


def _ending(run_id: str) -> str:
    from approvals.core.errors import ApprovalRequired
    from tests.approvals.factories import begin
    from tests.manifests_registry.factories import shop

    try:
        begin(run_id=run_id, snapshot=shop(approval="always"))
    except ApprovalRequired as waiting:
        return waiting.approval.id
    except Exception as error:  # noqa: BLE001  # whatever it is, the parent must hear of it
        return repr(error)
    return "passed"


if __name__ == "__main__":
    _run_child()
