"""Kill -9 of the calling process during the forward call: the step is in doubt, and nobody claims otherwise (D13)."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from approvals.operations.sweep import sweep_timeouts
from ledger import queries
from ledger.core.statuses import StepState
from ledger.operations.runs import open_run
from reversi_site.kit.clock import SystemClock
from rollback.core.ports import Tools
from rollback.operations.execution import run_foreground
from tests.databases import Database
from tests.system.agents import PRINCIPAL
from tests.system.killing import FOLDER, KillingExecutor
from tests.system.shop import Shop

TIMES = 5
LATER = timedelta(hours=1)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_caller_leaves_a_step_that_nobody_guesses_about(
    db: Database, tmp_path: Path, record_count: Callable[[str, object], None], moment: str
) -> None:
    shop = Shop(tmp_path)
    for _ in range(TIMES):
        run, _ = open_run(principal=PRINCIPAL, scope=("shop:*",), now=SystemClock().now())
        command = [sys.executable, "-m", "tests.system.calling_and_dying", run.id, moment]
        died = subprocess.run(command, env={**db.env(), FOLDER: str(tmp_path)}, capture_output=True, check=False)
        assert died.returncode == -signal.SIGKILL, died.stderr.decode()
        assert queries.get_step(run.id, 0).state is StepState.INTENDED
        assert sweep_timeouts(now=SystemClock().now() + LATER) == 1
        assert queries.get_step(run.id, 0).state is StepState.UNCERTAIN
        report = run_foreground(run_id=run.id, tools=Tools(KillingExecutor(shop)), actor="op")
        assert (report.to_json()["unresolved"], report.is_complete) == ([0], False)
    assert shop.count("cancellations").total() == 0
    assert shop.count("orders").total() == (TIMES if moment == "after" else 0)
    record_count(f"caller killed during the call, {moment} the effect ({db.engine})", TIMES)
