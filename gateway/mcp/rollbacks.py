"""The rollbacks that operators start in this gateway, each in a thread of its own.

The thread works as a worker does and reaches the tools over this gateway's own sessions. It outlives the request that
started it: whoever repeats the request waits for its end again. When the gateway ends, a rollback ends after the step
that it is at, and gives its run back; what is left is undone by the next one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from threading import Thread
from typing import TypeVar

import anyio
import anyio.to_thread
from django.db import connections

from ledger.queries import get_run
from reversi_sdk.errors import Conflict, Unavailable
from reversi_site.kit.clock import Clock
from rollback.core.options import RollbackOptions
from rollback.core.plan import Plan
from rollback.core.ports import Tools
from rollback.core.progress import Progress
from rollback.core.report import Report
from rollback.core.selection import Selection
from rollback.operations.execution import run_foreground
from rollback.queries import get_last_job, get_plan

ENDING_S = 10.0

T = TypeVar("T")
ToolsNow = Callable[[], Tools]
"""What rollbacks reach at the moment."""

logger = logging.getLogger(__name__)


class GatewayEnding(Unavailable):
    """The gateway ends, and with it its rollbacks."""

    code = "gateway_ending"

    def __init__(self) -> None:
        super().__init__("the gateway ends: what was not undone yet still stands")


class OtherRollbackRunning(Conflict):
    """The run is being rolled back here, with other options than are asked for now."""

    code = "rollback_running"

    def __init__(self, run_id: str) -> None:
        super().__init__(f"run {run_id} is being rolled back with other options; wait for the end of that")


@dataclass(frozen=True, slots=True)
class Standing:
    """How a rollback stands: how many undos are behind it, and at its end the report or the error."""

    done: int = 0
    total: int = 0
    last: str = ""
    report: Report | None = None
    error: Exception | None = None

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.report is not None or self.error is not None

    @property
    def words(self) -> str:
        """How far it is, for people."""
        return f"{self.done} of {self.total} done{f', last {self.last}' if self.last else ''}"


class Rollback:
    """A rollback that was started here; looked at from inside the event loop."""

    def __init__(self, run_id: str, options: RollbackOptions) -> None:
        self.run_id, self.options, self.standing = run_id, options, Standing()
        self._changed = anyio.Event()

    async def changed(self) -> Standing:
        """Wait until there is something new about it."""
        await self._changed.wait()
        return self.standing

    def tell(self, standing: Standing) -> None:
        """Say how it stands."""
        self.standing = standing
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


class Rollbacks:
    """The rollbacks of this gateway, at most one for each run."""

    def __init__(self, tools_now: ToolsNow, *, clock: Clock) -> None:
        self.tools_now, self._clock = tools_now, clock
        self._rollbacks: dict[str, Rollback] = {}
        self._loop = asyncio.get_running_loop()
        self._is_ending = False

    @classmethod
    @asynccontextmanager
    async def open(cls, tools_now: ToolsNow, *, clock: Clock) -> AsyncIterator[Rollbacks]:
        """Give the rollbacks for the block; at its end each is let come to the end of its step."""
        rollbacks = cls(tools_now, clock=clock)
        try:
            yield rollbacks
        finally:
            await rollbacks._end()

    async def start_or_join(self, run_id: str, *, options: RollbackOptions, actor: str) -> Rollback:
        """Start the rollback of a run, or find the same one that was started here and not reported yet.

        One that has ended is found only while nothing has happened in the run since: its report would speak of
        another world. Raises GatewayEnding, and OtherRollbackRunning.
        """
        found = self._rollbacks.get(run_id)
        if found is not None and found.standing.is_over and not await self._is_told_truly(found, options):
            self.reported(found)
        if self._is_ending:
            raise GatewayEnding
        found = self._rollbacks.get(run_id)
        if found is not None and found.options != options:
            raise OtherRollbackRunning(run_id)
        return found or self._start(run_id, options, actor)

    async def _is_told_truly(self, rollback: Rollback, options: RollbackOptions) -> bool:
        report = rollback.standing.report
        if rollback.options != options or report is None:
            return False
        is_last = partial(with_connection, partial(_is_last_word, report))
        return await anyio.to_thread.run_sync(is_last)

    def _start(self, run_id: str, options: RollbackOptions, actor: str) -> Rollback:
        rollback = self._rollbacks[run_id] = Rollback(run_id, options)
        work = partial(self._roll_back, rollback, actor)
        Thread(target=work, name=f"rollback {run_id}", daemon=True).start()
        return rollback

    def reported(self, rollback: Rollback) -> None:
        """Forget a rollback whose end was told: who asks again wants another."""
        if self._rollbacks.get(rollback.run_id) is rollback:
            del self._rollbacks[rollback.run_id]

    async def plan(self, *, run_id: str, selection: Selection | None) -> Plan:
        """Plan the rollback of a run, and say which undos nothing here can run; raises what get_plan raises.

        In a thread of its own: who can run an undo is asked through the event loop, and the journal must not wait.
        """

        def ask() -> Plan:
            can_run = self.tools_now().can_run
            return get_plan(run_id=run_id, now=self._clock.now(), selection=selection, can_run=can_run)

        return await anyio.to_thread.run_sync(partial(with_connection, ask))

    def _roll_back(self, rollback: Rollback, actor: str) -> None:
        """Do it, in its thread, and tell how it ended."""

        def do() -> Report:
            return run_foreground(
                run_id=rollback.run_id,
                tools=self.tools_now(),
                actor=actor,
                options=rollback.options,
                clock=self._clock,
                on_progress=partial(self._progress, rollback),
            )

        try:
            report = with_connection(do)
        except Exception as error:  # noqa: BLE001  # it is told to whoever waits
            self._tell(rollback, replace(rollback.standing, error=error))
        else:
            self._tell(rollback, replace(rollback.standing, report=report))

    def _progress(self, rollback: Rollback, progress: Progress) -> None:
        last = f"step {progress.step} {progress.tool} {progress.word}"
        self._tell(rollback, Standing(progress.done, progress.total, last))
        if self._is_ending:
            raise GatewayEnding

    def _tell(self, rollback: Rollback, standing: Standing) -> None:
        with suppress(RuntimeError):
            # The loop has ended only after the gateway waited for the thread as long as it could.
            self._loop.call_soon_threadsafe(rollback.tell, standing)

    async def _end(self) -> None:
        self._is_ending = True
        with anyio.move_on_after(ENDING_S, shield=True) as scope:
            for rollback in list(self._rollbacks.values()):
                while not rollback.standing.is_over:
                    await rollback.changed()
        if scope.cancelled_caught:
            logger.error("the gateway ends in the middle of an undo; another executor goes on when its lease runs out")


def _is_last_word(report: Report) -> bool:
    """Tell whether the report is the last thing that happened in its run."""
    job = get_last_job(report.run_id)
    return job.report == report.to_json() and job.ended_at == get_run(report.run_id).active_at


def with_connection(do: Callable[[], T]) -> T:
    """Do something in a thread that has no connection to the store yet, and leave it without one."""
    try:
        return do()
    finally:
        connections.close_all()
