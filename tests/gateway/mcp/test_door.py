"""The way from a thread into the gateway's event loop."""

from typing import Any, cast

import anyio
import pytest

from gateway.executors import Reached
from gateway.mcp.door import LoopDoor


class Upstreams:
    """Stands where upstreams would; a question only hands it back, or waits."""

    def __init__(self) -> None:
        self.given_up = anyio.Event()

    async def wait(self) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            self.given_up.set()


def test_door_brings_the_answer_and_what_was_raised() -> None:
    async def hand_back(reached: Reached) -> Reached:
        return reached

    async def fail(_: Reached) -> None:
        raise LookupError("nobody")

    async def main() -> None:
        upstreams = cast(Any, Upstreams())
        door = LoopDoor(upstreams)
        assert await anyio.to_thread.run_sync(lambda: door.ask(hand_back, within_s=20)) is upstreams
        with pytest.raises(LookupError, match="nobody"):
            await anyio.to_thread.run_sync(lambda: door.ask(fail, within_s=20))

    anyio.run(main)


def test_door_gives_up_a_question_that_takes_too_long() -> None:
    async def main() -> None:
        upstreams = Upstreams()
        door = LoopDoor(cast(Any, upstreams))
        with pytest.raises(TimeoutError):
            await anyio.to_thread.run_sync(lambda: door.ask(lambda _: upstreams.wait(), within_s=0.05))
        with anyio.fail_after(20):
            await upstreams.given_up.wait()

    anyio.run(main)
