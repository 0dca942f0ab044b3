"""The same approved call, made by many processes at the same moment, each from many threads."""

from threading import Barrier
from typing import Any

from tests import racing
from tests.databases import Database
from tests.racing import Endings


def race(*, db: Database, run_id: str, processes: int, threads: int) -> Endings:
    """Make processes x threads equal calls of the run; returns how each ended."""
    orders = {"run_id": run_id, "threads": threads}
    return racing.race(db=db, module="tests.approvals.racing", processes=processes, orders=orders)


def _caller(orders: dict[str, Any], start: Barrier, endings: Endings) -> None:
    from django.db import connections

    start.wait()
    endings.append(_ending(orders["run_id"]))
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
    racing.run_child(_caller)
