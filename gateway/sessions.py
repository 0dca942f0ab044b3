"""Sessions with upstreams for whoever has no event loop: each in a thread of its own, opened when it is first needed.

A worker that undoes opens its own session with the same command, folder and environment (D27). It stays open for a
minute after its last use, and ends with the process: the upstream's sees its input close, however ours ended.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

from gateway.core.upstream_errors import UpstreamUnavailable
from gateway.core.upstream_specs import UpstreamSpec

if TYPE_CHECKING:
    from gateway.executors import Reached

IDLE_S = 60.0
OPEN_S = 60.0
CLOSE_S = 10.0

T = TypeVar("T")

logger = logging.getLogger(__name__)


class Session:
    """A door into a session with one upstream; it opens itself, and again after it was idle or has ended."""

    def __init__(self, spec: UpstreamSpec, *, idle_s: float = IDLE_S) -> None:
        self._spec, self._idle_s = spec, idle_s
        self._lock = threading.Lock()
        self._running: _Running | None = None

    def ask(self, question: Callable[[Reached], Awaitable[T]], *, within_s: float) -> T:
        """Have the question answered in the session; raises what it raises, and TimeoutError without an answer."""
        answer = self._open(question)
        try:
            return answer.result(within_s)
        except TimeoutError:
            answer.cancel()
            raise

    def _open(self, question: Callable[[Reached], Awaitable[T]]) -> Future[T]:
        with self._lock:
            for _ in range(2):
                running = self._running = self._running or _Running(self._spec, self._idle_s)
                answer = running.submit(question)
                if answer is not None:
                    return answer
                # It went to sleep between two questions.
                self._running = None
        raise UpstreamUnavailable(self._spec.name, "could not be opened")

    def close(self) -> None:
        """End the session, if one is open."""
        with self._lock:
            running, self._running = self._running, None
        if running is not None:
            running.close()


class _Running:
    """The thread of an open session."""

    def __init__(self, spec: UpstreamSpec, idle_s: float) -> None:
        self._spec, self._idle_s = spec, idle_s
        self._opened: Future[Reached] = Future()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()
        self._under_way, self._is_closing = 0, False
        self._touched: asyncio.Event | None = None
        # A thread that keeps nothing alive: when the process ends, so does the session.
        self._thread = threading.Thread(target=self._run, name=f"upstream {spec.name}", daemon=True)
        self._thread.start()

    def submit(self, question: Callable[[Reached], Awaitable[T]]) -> Future[T] | None:
        """Ask in the session's loop; None when the session is closing."""
        try:
            reached = self._opened.result(OPEN_S)
        except TimeoutError:
            raise UpstreamUnavailable(self._spec.name, f"could not be opened within {OPEN_S:g} s") from None
        with self._lock:
            if self._is_closing or self._loop is None:
                return None
            self._under_way += 1
            return asyncio.run_coroutine_threadsafe(self._answer(question, reached), self._loop)

    async def _answer(self, question: Callable[[Reached], Awaitable[T]], reached: Reached) -> T:
        try:
            return await question(reached)
        finally:
            with self._lock:
                self._under_way -= 1
            if self._touched is not None:
                self._touched.set()

    def close(self) -> None:
        """End the session and wait for its process to end."""
        with self._lock:
            self._is_closing = True
            loop, touched = self._loop, self._touched
        if loop is not None and touched is not None and not loop.is_closed():
            loop.call_soon_threadsafe(touched.set)
        self._thread.join(CLOSE_S)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as error:
            logger.exception("the session with the upstream %s broke", self._spec.name)
            if not self._opened.done():
                self._opened.set_exception(UpstreamUnavailable(self._spec.name, f"could not be opened: {error}"))
        finally:
            with self._lock:
                self._is_closing = True

    async def _serve(self) -> None:
        # Late: whoever never meets an upstream need not pay for the protocol's library.
        from gateway.mcp.upstreams import open_upstreams

        self._loop, self._touched = asyncio.get_running_loop(), asyncio.Event()
        async with open_upstreams([self._spec]) as upstreams:
            self._opened.set_result(upstreams)
            while not self._may_end(is_idle=False):
                self._touched.clear()
                try:
                    await asyncio.wait_for(self._touched.wait(), self._idle_s)
                except TimeoutError:
                    if self._may_end(is_idle=True):
                        return

    def _may_end(self, *, is_idle: bool) -> bool:
        with self._lock:
            if is_idle and not self._under_way:
                self._is_closing = True
            return self._is_closing


_sessions: dict[tuple[int, UpstreamSpec], Session] = {}
_lock = threading.Lock()


def session_with(spec: UpstreamSpec) -> Session:
    """Return this process's session with the upstream; a forked child has none of its parent's."""
    with _lock:
        return _sessions.setdefault((os.getpid(), spec), Session(spec))


def close_sessions() -> None:
    """End every session of this process."""
    with _lock:
        mine = [key for key in _sessions if key[0] == os.getpid()]
        sessions = [_sessions.pop(key) for key in mine]
    for session in sessions:
        session.close()


atexit.register(close_sessions)
