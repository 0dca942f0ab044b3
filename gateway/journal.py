"""The only door from asynchronous code to operations: a few threads, each with its own connection to the store.

An operation that was started is awaited to its end, in a cancelled scope too: it may have committed, and whoever
asked must learn what. Only its deadline ends the waiting. SQLite has one writer, so it gets one thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from threading import Lock
from typing import Generic, ParamSpec, TypeVar

import anyio
from anyio.lowlevel import checkpoint_if_cancelled
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from reversi_sdk.errors import Unavailable

THREADS = 8
DEADLINE_S = 30.0

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger(__name__)


class JournalLate(Unavailable):
    """The store did not answer in time. What was asked of it may still be written; nothing was sent because of it."""

    code = "journal_late"

    def __init__(self, deadline_s: float) -> None:
        super().__init__(f"the journal did not answer within {deadline_s:g} s")


class JournalClosed(Unavailable):
    """The gateway is shutting down: the journal takes nothing more."""

    code = "journal_closed"

    def __init__(self) -> None:
        super().__init__("the journal takes nothing more: the gateway is shutting down")


class Journal:
    """Runs operations in threads of its own; made by `Journal.open`."""

    def __init__(self, pool: ThreadPoolExecutor, *, deadline_s: float) -> None:
        self._pool, self._deadline_s = pool, deadline_s

    @classmethod
    @asynccontextmanager
    async def open(cls, *, deadline_s: float = DEADLINE_S) -> AsyncIterator[Journal]:
        """Give a journal for the block; at its end what was started is awaited and every connection closed."""
        threads = _Threads()
        pool = ThreadPoolExecutor(_pool_size(), "journal", initializer=threads.enter)
        try:
            yield cls(pool, deadline_s=deadline_s)
        finally:
            with anyio.move_on_after(DEADLINE_S, shield=True) as scope:
                await anyio.to_thread.run_sync(partial(threads.leave, pool), abandon_on_cancel=True)
            if scope.cancelled_caught:
                logger.error("the journal was left while the store still had not answered")

    async def run(self, operation: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the operation in a thread and return what it returns, or raise what it raises.

        In a scope that was cancelled before, nothing is started. Raises JournalLate after the deadline, and
        JournalClosed after the journal's end.
        """
        return await self.run_or_settle(partial(operation, *args, **kwargs), late=_ignore)

    async def run_or_settle(self, operation: Callable[[], T], *, late: Callable[[T], object]) -> T:
        """Run the operation; when it ends after the deadline, `late` gets in its thread what nobody waits for."""
        await checkpoint_if_cancelled()
        job = _Job(operation, late)
        try:
            future = self._pool.submit(job)
        except RuntimeError:
            raise JournalClosed from None
        with anyio.move_on_after(self._deadline_s, shield=True):
            # What is still queued at the deadline is cancelled with the waiting.
            return await asyncio.wrap_future(future)
        return job.result_or_leave(future, self._deadline_s)


class _Job(Generic[T]):
    """One operation, which either its caller or, after the deadline, `late` gets the result of: who claims it first."""

    def __init__(self, operation: Callable[[], T], late: Callable[[T], object]) -> None:
        self._operation, self._late = operation, late
        self._claim = Lock()

    def __call__(self) -> T:
        """Do it, in a thread of the pool."""
        connection = connections[DEFAULT_DB_ALIAS]
        _close_if_lost(connection)
        try:
            result = self._operation()
            if not self._claim.acquire(blocking=False):
                self._leave(result)
            return result
        finally:
            if connection.errors_occurred:
                connection.close()

    def _leave(self, result: T) -> None:
        try:
            self._late(result)
        except Exception:
            logger.exception("what the journal did too late could not be settled")

    def result_or_leave(self, future: Future[T], deadline_s: float) -> T:
        """Return the result that came at the last moment; else raise JournalLate and leave it to `late`."""
        if self._claim.acquire(blocking=False):
            logger.error("the journal did not answer within %g s", deadline_s)
            raise JournalLate(deadline_s)
        return future.result()


class _Threads:
    """The connections of the pool's threads; they are opened there, and closed here when the threads have ended."""

    def __init__(self) -> None:
        self._connections: list[BaseDatabaseWrapper] = []

    def enter(self) -> None:
        """Be a new thread of the pool."""
        connection = connections[DEFAULT_DB_ALIAS]
        # It is closed by another thread, after this one has ended.
        connection.inc_thread_sharing()
        self._connections.append(connection)

    def leave(self, pool: ThreadPoolExecutor) -> None:
        """Wait for what was started and close the connections."""
        pool.shutdown(wait=True)
        for connection in self._connections:
            connection.close()


def _pool_size() -> int:
    return 1 if connections[DEFAULT_DB_ALIAS].vendor == "sqlite" else THREADS


def _close_if_lost(connection: BaseDatabaseWrapper) -> None:
    # A server that was restarted meanwhile must not cost the record of a call that was already made.
    if connection.connection is not None and not connection.is_usable():
        connection.close()


def _ignore(_result: object) -> None:
    """Let a result go that nobody waits for."""
