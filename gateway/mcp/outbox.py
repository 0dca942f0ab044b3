"""What waits to be written to an upstream's process, and which of it has left.

Putting something in never waits: an upstream that reads nothing must not hold up whoever gives up on it. A request
whose first byte has not left can be taken back; one that lies unread in the pipe of a dead process never arrived. Of
both it is certain that the tool did not run. Somebody who asks us without end and reads no answer fills the box; then
the wire ends.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import anyio
from mcp.shared.jsonrpc_dispatcher import cancelled_request_id_from_params
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, RequestId

from gateway.mcp.child_process import Pipe

MOST_LETTERS = 4096
MOST_BYTES = 64 * 1024 * 1024

Call = RequestId | None


@dataclass(frozen=True, slots=True)
class _Letter:
    call: Call
    data: bytes


class Outbox:
    """The stream that the library writes to."""

    def __init__(self, pipe: Pipe, *, on_full: Callable[[], None]) -> None:
        self._pipe, self._on_full = pipe, on_full
        self._letters: OrderedDict[int, _Letter] = OrderedDict()
        self._unsent: dict[Call, int] = {}
        self._taken_back: set[RequestId] = set()
        # Where in all that was written each request began, and how far the process has read when it was over.
        self._begun: dict[Call, int] = {}
        self._written = 0
        self._read: int | None = None
        self._number = 0
        self._bytes = 0
        self._is_closed = False
        self._wanted = anyio.Event()

    async def send(self, item: SessionMessage) -> None:
        """Take a message; raises ClosedResourceError when nothing more is written."""
        if self._is_closed:
            raise anyio.ClosedResourceError
        given_up = _given_up(item.message)
        if given_up is not None and self._take_back(given_up):
            return
        call = item.message.id if isinstance(item.message, JSONRPCRequest) else None
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        self._put(_Letter(call, text.encode() + b"\n"))

    def settle(self, call: RequestId) -> bool:
        """Tell of a request that has ended whether it certainly never arrived, and forget it."""
        self._take_back(call)
        is_unsent = call in self._taken_back
        self._taken_back.discard(call)
        began = self._begun.pop(call, None)
        return is_unsent or (began is not None and self._read is not None and began >= self._read)

    def take_stock(self) -> None:
        """See, when the wire is over, how far the process has read."""
        self._read = self._written - self._pipe.never_read()

    def _take_back(self, call: RequestId) -> bool:
        number = self._unsent.pop(call, None)
        if number is None:
            return False
        self._bytes -= len(self._letters.pop(number).data)
        self._taken_back.add(call)
        return True

    async def run(self) -> None:
        """Write what is put in until nobody reads any more; raises OSError or ClosedResourceError then."""
        while True:
            while not self._letters:
                self._wanted = anyio.Event()
                await self._wanted.wait()
            await self._write(next(iter(self._letters)))

    def close(self) -> None:
        """Take nothing more."""
        self._is_closed = True

    async def aclose(self) -> None:
        """Take nothing more."""
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _put(self, letter: _Letter) -> None:
        self._number += 1
        self._letters[self._number] = letter
        self._bytes += len(letter.data)
        if letter.call is not None:
            self._unsent[letter.call] = self._number
        self._wanted.set()
        if len(self._letters) > MOST_LETTERS or self._bytes > MOST_BYTES:
            self.close()
            self._on_full()

    async def _write(self, number: int) -> None:
        letter = self._letters[number]
        rest = memoryview(letter.data)
        while rest and number in self._letters:
            written = self._pipe.write(rest)
            if written and letter.call in self._unsent:
                self._begun[letter.call] = self._written
                del self._unsent[letter.call]
            self._written += written
            rest = rest[written:]
            if not written:
                await self._pipe.has_room()
        if self._letters.pop(number, None) is not None:
            self._bytes -= len(letter.data)


def _given_up(message: JSONRPCMessage) -> Call:
    if isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
        return cancelled_request_id_from_params(message.params)
    return None
