"""Kill -9 of real workers at each boundary of an undo; the next attempt finishes and undoes nothing twice (D23)."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway.operations.calls import call
from ledger import queries
from ledger.core.statuses import ReadBack, StepState
from ledger.operations.runs import open_run
from reversi_site.kit.clock import SystemClock
from rollback.models import RollbackJob
from rollback.operations.jobs import start_rollback
from rollback.operations.recovery import recover_abandoned_jobs
from tests.databases import Database
from tests.system.agents import PRINCIPAL, snapshot_of
from tests.system.killing import BOUNDARIES, FOLDER
from tests.system.shop import Shop, manifests
from tests.system.waiting import wait_until

TIMES = 5
STEPS = 3
LATER = timedelta(minutes=5)
Count = Callable[[str, object], None]


@contextmanager
def worker(db: Database, shop: Shop, log: Path) -> Iterator[None]:
    """Run the queue's real cluster on the test's database, with tools that kill it."""
    environment = {**db.env(), "REVERSI_TOOLS": "tests.system.killing.killing_tools", FOLDER: str(shop.folder)}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "django", "qcluster"],
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)


def order_run(shop: Shop, boundary: str, number: int, *, is_keyed: bool) -> str:
    """Open a run of three orders, the second of which kills who cancels it."""
    run, _ = open_run(principal=PRINCIPAL, scope=("shop:*",), now=SystemClock().now())
    snapshot = snapshot_of(manifests(is_keyed=is_keyed))

    def execute(arguments: dict[str, Any], key: str | None) -> None:
        shop.order(arguments["order"])

    for step in range(STEPS):
        args = {"order": f"{boundary}/{number}/{step}"}
        call(run.id, "shop.order", args, execute=execute, principal=PRINCIPAL, snapshot=snapshot)
    return run.id


def expire_leases(db: Database) -> None:
    """Let the time pass that a dead worker's lease still had."""
    db.raw().execute("UPDATE rollback_rollbackjob SET lease_until_ms = 1 WHERE state = 'running'")


def job_states() -> set[str]:
    return set(RollbackJob.objects.values_list("state", flat=True))


@pytest.mark.timeout(240)
@pytest.mark.parametrize("is_keyed", [True, False], ids=["keyed", "read_back_only"])
def test_killed_worker_is_followed_by_one_that_finishes(
    db: Database, tmp_path: Path, record_count: Count, is_keyed: bool
) -> None:
    kill_and_follow(db, Shop(tmp_path), record_count, times=TIMES, is_keyed=is_keyed)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("is_keyed", [True, False], ids=["keyed", "read_back_only"])
def test_killed_worker_is_followed_by_one_that_finishes_at_length(
    db: Database, tmp_path: Path, record_count: Count, is_keyed: bool
) -> None:
    kill_and_follow(db, Shop(tmp_path), record_count, times=20, is_keyed=is_keyed)


def kill_and_follow(db: Database, shop: Shop, record_count: Count, *, times: int, is_keyed: bool) -> None:
    """Kill each boundary's worker so many times, let the next attempt finish, and look at the downstream."""
    numbers = range(times)
    runs = {(b, n): order_run(shop, b, n, is_keyed=is_keyed) for b in BOUNDARIES for n in numbers}
    with worker(db, shop, shop.folder / "worker.log"):
        for run_id in runs.values():
            start_rollback(run_id=run_id, actor="op", now=SystemClock().now())
        wait_until(lambda: kills(shop) == len(runs), what=f"{len(runs)} kills", limit_s=300)
        wait_until(lambda: job_states() == {"running"}, what="every job was begun")
        expire_leases(db)
        recover_abandoned_jobs(now=SystemClock().now() + LATER)
        wait_until(lambda: job_states() == {"done"}, what="every job is done", limit_s=300)
    for (boundary, _), run_id in runs.items():
        require_undone_once(shop, run_id, boundary)
    for boundary in BOUNDARIES:
        record_count(f"worker killed at {boundary} ({db.engine}, {'keyed' if is_keyed else 'unkeyed'})", len(numbers))


def kills(shop: Shop) -> int:
    return len(list(shop.folder.glob("once-*")))


def require_undone_once(shop: Shop, run_id: str, boundary: str) -> None:
    report = RollbackJob.objects.get(run_id=run_id).report or {}
    assert report["complete"], report
    assert report["compensated"] == list(range(STEPS))
    for step in queries.list_steps(run_id):
        assert (step.state, step.read_back) == (StepState.COMPENSATED, ReadBack.VERIFIED)
    cancelled = {order: n for order, n in shop.count("cancellations").items() if order.startswith(boundary)}
    assert set(cancelled.values()) == {1}
    kinds = [event.kind for event in queries.list_events(run_id)]
    assert kinds.count("rollback_started") == 2
    assert queries.check_run_chain(run_id).problems == ()
