"""A gate at which a call in flight is held, in the loop or in a thread of the journal, until the test has acted."""

import asyncio
from datetime import datetime
from threading import Event

import anyio

from tests.gateway.factories import SteppingClock

PATIENCE_S = 20


class Gate:
    """Holds whoever comes through the named place; made inside the event loop."""

    def __init__(self, at: str) -> None:
        self.at = at
        self.passed: list[str] = []
        self._loop = asyncio.get_running_loop()
        self._is_reached, self._is_opened = anyio.Event(), Event()

    async def pass_in_loop(self, place: str) -> None:
        """Hold a task until it is cancelled."""
        self.passed.append(place)
        if place == self.at:
            self._is_reached.set()
            await anyio.sleep_forever()

    def pass_in_thread(self, place: str) -> None:
        """Hold a thread until the gate is opened."""
        self.passed.append(place)
        if place == self.at:
            self._loop.call_soon_threadsafe(self._is_reached.set)
            assert self._is_opened.wait(PATIENCE_S)

    async def reached(self) -> None:
        with anyio.fail_after(PATIENCE_S):
            await self._is_reached.wait()

    def open(self) -> None:
        self._is_opened.set()


class GatedClock(SteppingClock):
    """Comes through a gate each time it is asked: at `write 1`, `write 2` and so on."""

    def __init__(self, gate: Gate) -> None:
        super().__init__()
        self._gate, self._asked = gate, 0

    def now(self) -> datetime:
        self._asked += 1
        self._gate.pass_in_thread(f"write {self._asked}")
        return super().now()
