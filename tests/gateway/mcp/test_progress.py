"""Words about a request that is worked on: none is lost, none comes late, and a flood ends in the newest."""

from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import pytest

from gateway.mcp.progress import MOST_WAITING, Progress
from tests.gateway.mcp.servers.starting import open_server, plain

PATIENCE_S, LONG_MS = 30, 20_000

Saying = Callable[[Progress], Coroutine[Any, Any, None]]


def heard_from(words: Saying, *, let_go: bool = True) -> list[float]:
    """Return what a listener, who is let go after the words were said, has heard once the answer may be given."""
    heard: list[float] = []

    async def main() -> None:
        listening = anyio.Event()

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            await listening.wait()
            heard.append(progress)

        progress = Progress(tell)
        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(words, progress)
                await anyio.wait_all_tasks_blocked()
                if let_go:
                    listening.set()
                await progress.passed_on()
                tasks.cancel_scope.cancel()

    anyio.run(main)
    return heard


def burst(count: int) -> Saying:
    async def say(progress: Progress) -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(count):
                tasks.start_soon(progress.hear, float(number), None, None)

    return say


def test_burst_is_told_whole_in_order_and_before_the_answer() -> None:
    assert heard_from(burst(20)) == list(range(20))


def test_flood_ends_in_its_newest_words() -> None:
    count = 10 * MOST_WAITING

    heard = heard_from(burst(count))

    assert heard == [0, *range(count - MOST_WAITING, count)]


def test_listener_who_does_not_listen_holds_the_answer_back_only_shortly() -> None:
    assert heard_from(burst(3), let_go=False) == []


@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
def test_what_an_upstream_tells_just_before_its_answer_is_heard_before_it(revision: str) -> None:
    heard: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        await anyio.lowlevel.checkpoint()
        heard.append(progress)

    async def main() -> list[float]:
        async with open_server(plain(revision=revision)) as upstream:
            await upstream.call("progress", {}, timeout_ms=LONG_MS, on_progress=hear)
            return list(heard)

    assert anyio.run(main) == [1, 2, 3]
