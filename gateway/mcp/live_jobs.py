"""Do the rollbacks that wait for a session which this gateway holds (D27).

A queued rollback that needs an upstream marked `session: live` is left alone by every worker; the gateway that holds
the session looks for such jobs and does them, each under the job's lease like any other executor.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial

import anyio
import anyio.to_thread
from django.db import Error as DatabaseError

from gateway.journal import Journal
from gateway.mcp.rollbacks import GatewayEnding, ToolsNow, with_connection
from reversi_sdk.errors import ReversiError
from rollback.core.ports import Tools
from rollback.core.progress import Progress
from rollback.operations.execution import execute_job
from rollback.queries import list_jobs_waiting_for

INTERVAL_S = 2.0

logger = logging.getLogger(__name__)


async def do_live_jobs(
    journal: Journal, tools_now: ToolsNow, sessions_now: Callable[[], Sequence[str]], *, interval_s: float = INTERVAL_S
) -> None:
    """Look for the jobs that wait for the sessions which go on, until cancelled, and do them one after the other.

    Returns at once without live upstreams.
    """
    while sessions := sessions_now():
        await do_waiting_jobs(journal, tools_now(), sessions)
        await anyio.sleep(interval_s)


async def do_waiting_jobs(journal: Journal, tools: Tools, upstreams: Sequence[str]) -> int:
    """Do the jobs that wait now; returns how many were done."""
    try:
        jobs = await journal.run(list_jobs_waiting_for, upstreams)
    except (DatabaseError, ReversiError) as error:
        logger.warning("the waiting rollbacks could not be looked for: %s", error)
        return 0
    for job in jobs:
        await _in_a_thread(job.id, tools)
    return len(jobs)


async def _in_a_thread(job_id: str, tools: Tools) -> None:
    """Do a job; when the gateway ends meanwhile, wait for the step that it is at, and give the run back."""
    ending = threading.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_tell_when_cancelled, ending)
        await anyio.to_thread.run_sync(partial(_do, job_id, tools, ending))
        tasks.cancel_scope.cancel()


async def _tell_when_cancelled(ending: threading.Event) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        ending.set()


def _do(job_id: str, tools: Tools, ending: threading.Event) -> None:
    def stop_when_ending(_progress: Progress) -> None:
        if ending.is_set():
            raise GatewayEnding

    try:
        with_connection(partial(execute_job, job_id=job_id, tools=tools, on_progress=stop_when_ending))
    except GatewayEnding:
        logger.warning("the gateway ends in the middle of the rollback %s", job_id)
    except Exception:
        logger.exception("the rollback %s broke down", job_id)
