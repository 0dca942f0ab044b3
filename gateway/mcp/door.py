"""The way from a thread into the event loop that holds a gateway's upstreams."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import TimeoutError as Late
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from gateway.executors import Reached

T = TypeVar("T")


class LoopDoor:
    """Asks from a thread, answers from the loop in which it was made."""

    def __init__(self, upstreams: Reached) -> None:
        self._upstreams, self._loop = upstreams, asyncio.get_running_loop()

    def ask(self, question: Callable[[Reached], Awaitable[T]], *, within_s: float) -> T:
        """Have the question answered there; raises what it raises, and TimeoutError when the loop does not answer."""

        async def answer() -> T:
            return await question(self._upstreams)

        asked = asyncio.run_coroutine_threadsafe(answer(), self._loop)
        try:
            return asked.result(within_s)
        except Late:
            asked.cancel()
            raise TimeoutError from None
