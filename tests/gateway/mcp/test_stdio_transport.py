"""Lines to and from a process: how they are cut and read, and what of them has left."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from gateway.mcp.child_process import Pipe, child_environment
from gateway.mcp.outbox import MOST_BYTES, MOST_LETTERS, Outbox
from gateway.mcp.stdio_transport import GARBAGE_LIMIT, LINE_LIMIT, Incoming, Lines

ANSWER = b'{"jsonrpc": "2.0", "id": 1, "result": {"n": 1}}\n'
PIPE_FULL = 1024 * 1024


def taken(lines: Lines, *chunks: bytes) -> list[Incoming]:
    return [line for chunk in chunks for line in lines.take(chunk)]


def results(items: Sequence[Incoming]) -> list[Any]:
    return [item.message.result for item in items if isinstance(item, SessionMessage)]  # type: ignore[union-attr]


@given(st.lists(st.integers(0, 400), max_size=6))
def test_lines_are_the_same_however_they_are_cut(cuts: list[int]) -> None:
    whole = ANSWER * 3 + b"\n  \n" + ANSWER.rstrip() + b"\r\n" + "{é}\n".encode() + ANSWER
    places = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    chunks = [whole[start:end] for start, end in pairwise(places)]

    items = taken(Lines("u"), *chunks)

    assert results(items) == [{"n": 1}] * 5
    assert len(items) == 6


def test_a_line_may_be_as_long_as_the_limit_and_no_longer() -> None:
    lines = Lines("u")
    taken(lines, *[b"x" * (1024 * 1024)] * (LINE_LIMIT // (1024 * 1024)))
    assert lines.trouble is None

    taken(lines, b"x")

    assert lines.trouble == "sent a line of more than 16 MiB"


def test_a_run_of_unreadable_lines_ends_the_wire_and_what_follows_is_not_read() -> None:
    lines = Lines("u")
    taken(lines, b"{\n" * GARBAGE_LIMIT)
    assert lines.trouble is None

    items = taken(lines, b"{\n" + ANSWER)

    assert results(items) == []
    assert lines.trouble == "sent more than 200 lines in a row that are no messages"


def test_a_readable_line_ends_a_run_of_unreadable_ones() -> None:
    lines = Lines("u")

    for _ in range(3):
        taken(lines, b"{\n" * GARBAGE_LIMIT, ANSWER)

    assert lines.trouble is None


@pytest.mark.parametrize(
    ("line", "request_id"),
    [
        (b'{"jsonrpc": "2.0", "id": 7, "result": 42}\n', 7),
        (b'{"jsonrpc": "2.0", "id": "a", "result": []}\n', "a"),
        (b'{"id": 7, "result": {}}\n', 7),
        (b'{"jsonrpc": "2.0", "id": 7}\n', 7),
        (b'{"jsonrpc": "2.0", "id": 7, "error": "no"}\n', 7),
    ],
)
def test_a_bad_answer_is_told_to_the_request_it_names(line: bytes, request_id: int | str) -> None:
    (item,) = taken(Lines("u"), line)

    assert isinstance(item, SessionMessage)
    assert isinstance(item.message, JSONRPCError)
    assert item.message.id == request_id


@pytest.mark.parametrize(
    "line",
    [
        b"garbage\n",
        b"[]\n",
        b"12\n",
        b'{"id": 7, "method": 1}\n',
        b'{"id": true, "result": 1}\n',
        b'{"id": [7], "result": {}}\n',
        b'{"id": null, "result": {}}\n',
    ],
)
def test_a_line_that_names_no_request_is_an_error_of_the_wire(line: bytes) -> None:
    (item,) = taken(Lines("u"), line)

    assert isinstance(item, Exception)


def test_the_environment_is_ours_without_what_is_only_ours() -> None:
    environ = {
        "PATH": "/bin",
        "REVERSI_DATA": "d",
        "REVERSI_SECRET_KEY": "s",
        "DATABASE_URL": "p",
        "MY_DATABASE_URL": "m",
    }

    assert child_environment(environ, {"PATH": "/usr/bin", "REVERSI_X": "asked for"}) == {
        "PATH": "/usr/bin",
        "MY_DATABASE_URL": "m",
        "REVERSI_X": "asked for",
    }


def request(number: int, *, size: int = 1) -> SessionMessage:
    return SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=number, method="m", params={"x": "y" * size}))


def given_up(number: int) -> SessionMessage:
    params = {"requestId": number}
    return SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params=params))


class Written:
    """An outbox, and the other end of the pipe that it writes to."""

    def __init__(self) -> None:
        self._reader, writer = os.pipe()
        self.pipe = Pipe(writer)
        self.is_full = False
        self.box = Outbox(self.pipe, on_full=self._fill)

    def _fill(self) -> None:
        self.is_full = True

    async def send(self, *messages: SessionMessage) -> None:
        """Put messages in, and let them be written as far as there is room."""
        for message in messages:
            await self.box.send(message)
        await anyio.wait_all_tasks_blocked()

    async def read(self, count: int) -> bytes:
        await anyio.wait_readable(self._reader)
        return os.read(self._reader, count)

    async def run(self) -> None:
        with suppress(BrokenPipeError, anyio.ClosedResourceError):
            await self.box.run()

    def die(self) -> None:
        """Be read by nobody any more."""
        reader, self._reader = self._reader, -1
        if reader >= 0:
            os.close(reader)


@asynccontextmanager
async def writing() -> AsyncIterator[Written]:
    written = Written()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(written.run)
        yield written
        tasks.cancel_scope.cancel()
    written.die()
    written.pipe.close()


def test_a_request_that_was_written_was_sent() -> None:
    async def main() -> tuple[bytes, bool]:
        async with writing() as written:
            await written.send(request(1))
            return await written.read(PIPE_FULL), written.box.settle(1)

    assert anyio.run(main) == (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":"y"}}\n', False)


def test_a_request_that_found_no_room_can_be_taken_back_and_leaves_no_trace() -> None:
    async def main() -> tuple[list[bool], bytes]:
        async with writing() as written:
            await written.send(request(1, size=PIPE_FULL), request(2), request(3))
            await written.send(given_up(2))
            settled = [written.box.settle(number) for number in (1, 2)]
            said = b""
            while b'"id":3' not in said:
                said += await written.read(PIPE_FULL)
            return settled, said

    settled, said = anyio.run(main)

    assert settled == [False, True]
    assert said.count(b"\n") == 2
    assert b'"id":2' not in said
    assert b"cancelled" not in said


def test_a_request_that_waits_for_room_can_still_be_taken_back() -> None:
    async def main() -> tuple[bool, bytes]:
        async with writing() as written:
            while written.pipe.write(memoryview(b" " * 4096)):
                continue
            await written.send(request(1))
            await written.send(given_up(1))
            is_unsent = written.box.settle(1)
            await written.send(request(2))
            said = b""
            while b"\n" not in said:
                said += await written.read(PIPE_FULL)
            return is_unsent, said.strip()

    is_unsent, said = anyio.run(main)

    assert is_unsent
    assert said == request(2).message.model_dump_json(exclude_unset=True).encode()


def test_a_request_on_its_way_is_given_up_by_telling_the_server() -> None:
    async def main() -> bytes:
        async with writing() as written:
            await written.send(request(1))
            await written.send(given_up(1))
            return await written.read(PIPE_FULL)

    assert b"notifications/cancelled" in anyio.run(main)


@pytest.mark.parametrize(("read", "is_unsent"), [(0, [True, True]), (1, [False, True]), (PIPE_FULL, [False, False])])
def test_what_a_dead_process_has_not_read_never_arrived(read: int, is_unsent: list[bool]) -> None:
    async def main() -> list[bool]:
        async with writing() as written:
            await written.send(request(1), request(2))
            if read:
                await written.read(read)
            written.die()
            written.box.take_stock()
            return [written.box.settle(number) for number in (1, 2)]

    assert anyio.run(main) == is_unsent


def test_what_somebody_can_still_read_may_arrive() -> None:
    async def main() -> bool:
        async with writing() as written:
            await written.send(request(1))
            written.box.take_stock()
            return written.box.settle(1)

    assert anyio.run(main) is False


def test_a_request_to_a_pipe_that_nobody_reads_was_not_sent() -> None:
    async def main() -> bool:
        async with writing() as written:
            written.die()
            await written.send(request(1))
            return written.box.settle(1)

    assert anyio.run(main) is True


def test_answers_that_nobody_reads_fill_the_box() -> None:
    async def main() -> list[bool]:
        answer = SessionMessage(JSONRPCResponse(jsonrpc="2.0", id="a", result={"x": "y" * PIPE_FULL}))
        async with writing() as written:
            seen = []
            for _ in range(MOST_BYTES // PIPE_FULL):
                seen.append(written.is_full)
                await written.send(answer)
            with pytest.raises(anyio.ClosedResourceError):
                await written.send(answer)
            return [*seen, written.is_full]

    *before, after = anyio.run(main)

    assert not any(before)
    assert after


def test_many_small_answers_that_nobody_reads_fill_the_box_too() -> None:
    async def main() -> bool:
        answer = SessionMessage(JSONRPCResponse(jsonrpc="2.0", id="a", result={}))
        async with writing() as written:
            await written.send(request(1, size=PIPE_FULL))
            with pytest.raises(anyio.ClosedResourceError):
                await written.send(*[answer] * (MOST_LETTERS + 1))
            return written.is_full

    assert anyio.run(main)
