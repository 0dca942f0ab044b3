"""What an upstream tells of one request while it works on it, on its way to whoever asked: in order, before the answer.

A flood does not pile up: of what waits behind a slow listener only the newest words are kept.
"""

from __future__ import annotations

from collections import deque

import anyio
from mcp.shared.dispatcher import ProgressFnT

MOST_WAITING = 100
PATIENCE_S = 1.0


class Progress:
    """The progress of one request; `hear` takes each word as it comes."""

    def __init__(self, tell: ProgressFnT) -> None:
        self._tell = tell
        self._waiting: deque[tuple[float, float | None, str | None]] = deque(maxlen=MOST_WAITING)
        self._is_telling, self._told = False, anyio.Event()

    async def hear(self, progress: float, total: float | None, message: str | None) -> None:
        """Take a word, and pass on all that wait unless that is being done."""
        self._waiting.append((progress, total, message))
        if self._is_telling:
            return
        self._is_telling, self._told = True, anyio.Event()
        try:
            while self._waiting:
                await self._tell(*self._waiting.popleft())
        finally:
            self._is_telling = False
            self._told.set()

    async def passed_on(self) -> None:
        """Wait, not for long, until everything was told; no cancellation takes the answer away meanwhile."""
        with anyio.move_on_after(PATIENCE_S, shield=True):
            while self._is_telling:
                await self._told.wait()
