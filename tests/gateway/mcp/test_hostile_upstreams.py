"""Servers that break down or break the protocol: each call ends in time and says whether it was sent, and the next one
works, by another process where it must be.
"""

import resource
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.core.upstream_errors import (
    UpstreamAnswerInvalid,
    UpstreamAnswerLost,
    UpstreamTimeout,
    UpstreamUnavailable,
)
from gateway.core.upstream_specs import UpstreamSpec
from gateway.mcp.server_upstream import ServerUpstream
from reversi_sdk.errors import EffectUncertainError, Unavailable
from tests.gateway.mcp.servers.pids import noted_pids
from tests.gateway.mcp.servers.starting import hostile, open_server, text_of

SHORT_MS = 400
LONG_MS = 20_000
# Beyond what the interpreter itself takes and gives back; a flood without bound takes hundreds.
MEMORY_MIB = 120


async def ending(upstream: ServerUpstream, tool: str, *, timeout_ms: int = LONG_MS) -> Any:
    """Return the error that a call ends with, or its answer."""
    try:
        return await upstream.call(tool, {}, timeout_ms=timeout_ms)
    except (EffectUncertainError, Unavailable) as error:
        return error


async def pid_of(upstream: ServerUpstream) -> int:
    return int(text_of(await upstream.call("fine", {}, timeout_ms=LONG_MS)))


def call_twice(spec: UpstreamSpec, tool: str, *, timeout_ms: int = LONG_MS) -> tuple[Any, int, int]:
    """Return how a call of the tool ends, and the processes that answered before and after it."""

    async def main() -> tuple[Any, int, int]:
        async with open_server(spec) as upstream:
            before = await pid_of(upstream)
            ended = await ending(upstream, tool, timeout_ms=timeout_ms)
            return ended, before, await pid_of(upstream)

    return anyio.run(main)


@pytest.mark.parametrize(
    ("tool", "timeout_ms", "error", "words"),
    [
        ("silent", SHORT_MS, UpstreamTimeout, "did not answer within 0.4 s"),
        ("garbage", SHORT_MS, UpstreamTimeout, "did not answer"),
        ("deep", SHORT_MS, UpstreamTimeout, "did not answer"),
        ("wrong_id_type", SHORT_MS, UpstreamTimeout, "did not answer"),
        ("number", LONG_MS, UpstreamAnswerInvalid, "no message of JSON-RPC"),
        ("no_result_of_a_call", LONG_MS, UpstreamAnswerInvalid, "content: Input should be a valid list"),
        ("not_finite", LONG_MS, UpstreamAnswerInvalid, "float"),
        ("surrogate", LONG_MS, UpstreamAnswerInvalid, "no message of JSON-RPC"),
    ],
)
def test_a_bad_answer_costs_only_its_own_call(
    pids: Path, tool: str, timeout_ms: int, error: type[Exception], words: str
) -> None:
    ended, before, after = call_twice(hostile(pids=pids), tool, timeout_ms=timeout_ms)

    assert type(ended) is error
    assert words in str(ended)
    assert before == after


@pytest.mark.parametrize("tool", ["garbage_then_fine", "not_text", "unknown_id", "twice", "stderr_flood"])
def test_noise_around_an_answer_is_passed_over(pids: Path, tool: str) -> None:
    ended, before, after = call_twice(hostile(pids=pids), tool)

    assert text_of(ended) == str(before) == str(after)


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("die", "exited with code 3 (the disk is full) before it answered"),
        ("half_an_answer_and_die", "exited with code 5 before it answered"),
        ("close_output", "closed its output before it answered"),
        ("garbage_flood", "sent more than 200 lines in a row that are no messages before it answered"),
        ("endless_line", "sent a line of more than 16 MiB before it answered"),
        ("request_flood", "does not read what it is sent before it answered"),
    ],
)
def test_an_answer_that_cannot_come_any_more_is_lost_and_the_server_started_again(
    pids: Path, tool: str, words: str
) -> None:
    ended, before, after = call_twice(hostile(pids=pids), tool)

    assert type(ended) is UpstreamAnswerLost
    assert str(ended) == f"the upstream hostile {words}"
    assert before != after


def test_a_server_that_dies_after_its_answer_is_replaced_before_the_next_call_is_lost(
    tmp_path: Path, pids: Path
) -> None:
    calls = tmp_path / "calls"

    answered, before, after = call_twice(hostile(pids=pids, options=["--calls", str(calls)]), "answer_and_die")

    assert text_of(answered) == str(before)
    assert before != after
    assert calls.read_text().split() == ["fine", "answer_and_die", "fine"]


@pytest.mark.parametrize(
    "tool", ["endless_line", "garbage_flood", "request_flood", "notification_flood", "stderr_flood"]
)
def test_a_flood_does_not_fill_memory(tool: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    call_twice(hostile(), tool)

    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown // (1024 if sys.platform == "linux" else 1024 * 1024) < MEMORY_MIB


def test_a_flood_of_notifications_does_not_hold_up_the_answer() -> None:
    answered, before, after = call_twice(hostile(), "notification_flood")

    assert text_of(answered) == str(before) == str(after)


def test_a_server_that_asks_for_what_we_do_not_offer_is_refused_and_goes_on() -> None:
    ended, before, after = call_twice(hostile(), "asks_us")

    answers = ended["structuredContent"]["answers"]
    assert [answer["id"] for answer in answers] == [f"ask-{at}" for at in range(5)]
    assert ["error" in answer for answer in answers] == [True, True, True, True, False]
    assert before == after


def test_a_server_that_reads_nothing_holds_nobody_up_and_is_replaced(pids: Path, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    large = {"text": "x" * 200_000}

    async def main() -> list[Any]:
        async with open_server(hostile(pids=pids, options=["--calls", str(calls)])) as upstream:
            ends: list[Any] = [await ending(upstream, "deaf", timeout_ms=SHORT_MS)]
            for _ in range(2):
                try:
                    ends.append(await upstream.call("fine", large, timeout_ms=SHORT_MS))
                except (EffectUncertainError, Unavailable) as error:
                    ends.append(error)
            return [*ends, await pid_of(upstream)]

    deaf, half_sent, unsent, pid = anyio.run(main)

    assert [type(each) for each in (deaf, half_sent, unsent)] == [UpstreamTimeout, UpstreamTimeout, UpstreamUnavailable]
    assert str(unsent) == "nothing was sent: the upstream hostile takes no requests in"
    assert pid != noted_pids(pids)[0]
    assert calls.read_text().split() == ["deaf", "fine"]


def test_two_calls_that_time_out_do_not_end_a_server_that_lives(pids: Path) -> None:
    async def main() -> tuple[list[Any], int, int]:
        async with open_server(hostile(pids=pids)) as upstream:
            before = await pid_of(upstream)
            ends = [await ending(upstream, "silent", timeout_ms=SHORT_MS) for _ in range(3)]
            return ends, before, await pid_of(upstream)

    ends, before, after = anyio.run(main)

    assert [type(each) for each in ends] == [UpstreamTimeout] * 3
    assert before == after


@pytest.mark.parametrize(
    ("start", "words"),
    [
        ("exit", "exited with code 7 (no such database)"),
        ("chatter", "sent more than 200 lines in a row that are no messages"),
    ],
)
def test_a_server_that_does_not_start_is_told_with_its_last_words(pids: Path, start: str, words: str) -> None:
    async def main() -> tuple[Any, str]:
        async with open_server(hostile(pids=pids, options=["--start", start])) as upstream:
            return await ending(upstream, "fine"), upstream.state

    ended, state = anyio.run(main)

    assert type(ended) is UpstreamUnavailable
    assert str(ended) == f"nothing was sent: the upstream hostile {words}"
    assert state == "down"


def test_a_command_that_is_none_is_told_by_its_name() -> None:
    async def main() -> Any:
        async with open_server(UpstreamSpec("hostile", command=("./no-such-server", "--token", "secret"))) as upstream:
            return await ending(upstream, "fine")

    ended = anyio.run(main)

    assert type(ended) is UpstreamUnavailable
    assert str(ended) == (
        "nothing was sent: the upstream hostile cannot be started (no-such-server): No such file or directory"
    )


def test_a_server_that_dies_of_an_unknown_method_is_greeted_in_the_older_way(pids: Path) -> None:
    async def main() -> int:
        async with open_server(hostile(pids=pids, options=["--start", "unknown_is_fatal"])) as upstream:
            return await pid_of(upstream)

    assert anyio.run(main) == noted_pids(pids)[1]
