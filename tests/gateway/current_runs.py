"""Processes in which the same client asks for its current run at the same moment."""

from threading import Barrier
from typing import Any

from tests import racing
from tests.databases import Database
from tests.racing import Endings


def race(*, db: Database, processes: int, threads: int) -> Endings:
    """Ask in processes x threads, all starting together; returns the runs that were given, new ones marked."""
    return racing.race(db=db, module="tests.gateway.current_runs", processes=processes, orders={"threads": threads})


def _asker(orders: dict[str, Any], start: Barrier, endings: Endings) -> None:
    from django.db import connections

    start.wait()
    endings.append(_ending())
    connections.close_all()


def _ending() -> str:
    from gateway.operations.runs import current_run
    from tests.gateway.operations.test_current_runs import LATER, agent, terms

    try:
        run, is_new = current_run(caller=agent(), terms=terms(), now=LATER)
    except Exception as error:  # noqa: BLE001  # whatever it is, the parent must hear of it
        return repr(error)
    return f"new {run.id}" if is_new else run.id


if __name__ == "__main__":
    racing.run_child(_asker)
