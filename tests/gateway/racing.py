"""Calls that many processes make at the same moment, each from many threads."""

from threading import Barrier
from typing import Any

from tests import racing
from tests.databases import Database
from tests.racing import Endings


def race(*, db: Database, processes: int, threads: int, calls: int, key: str | None) -> Endings:
    """Make processes x threads x calls calls, all threads starting together; returns how each ended."""
    orders = {"threads": threads, "calls": calls, "key": key}
    return racing.race(db=db, module="tests.gateway.racing", processes=processes, orders=orders)


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
    racing.run_child(_caller)
