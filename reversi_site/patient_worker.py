"""A web worker that a slow client costs a file handle and no thread.

Gunicorn's threads read from their client as long as it sends: a few dozen clients that send a byte now and then would
keep every thread waiting. Here the main loop gathers each request without blocking, head and body, and a thread gets
it once it is complete. Who is slower than a patience of some seconds plus a lowest rate is cut off, and so is who sends
when too much is being gathered already. A body that is longer than the API takes is not gathered at all.
"""

from __future__ import annotations

import re
import selectors
import socket
import struct
import time
from dataclasses import dataclass, field
from typing import Any

from gunicorn.workers.gthread import ThreadWorker  # type: ignore[import-untyped]  # it has none

from reversi_site.kit.api.documents import BODY_LIMIT

PATIENCE_SECONDS = 20.0
LOWEST_RATE = 16 * 1024
GATHERED_LIMIT = 128 * 1024 * 1024
# A client that does not take its answer gives the thread back after so long.
SEND_SECONDS = 30
# How long a worker that stops waits for the rest of a request.
STOPPING_SECONDS = 2.0

_PIECE = 64 * 1024
_HEAD_LIMIT = 128 * 1024
_END_OF_HEAD = b"\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,19})[ \t]*\r\n", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[^\r\n]*chunked[ \t]*\r\n", re.IGNORECASE)
_EXPECT = re.compile(rb"\r\nexpect:[ \t]*100-continue[ \t]*(?=\r\n)", re.IGNORECASE)
# What begins otherwise is no request: a handshake of TLS, say, whose sender waits for an answer.
_BEGINNING = re.compile(rb"[\r\nA-Za-z]|$")
_SIZE = re.compile(rb"([0-9a-fA-F]{1,8})[^\r\n]*\r\n")
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


@dataclass(slots=True)
class Gathered:
    """What has come of one request."""

    data: bytearray = field(default_factory=bytearray)
    is_asked_to_wait: bool = False
    _body: int | None = None
    _length: int | None = None
    _at: int = 0

    def take(self, piece: bytes) -> None:
        """Add what has come."""
        self.data += piece
        if self._body is None:
            self._look_at_head()

    def _look_at_head(self) -> None:
        end = self.data.find(_END_OF_HEAD)
        if end < 0:
            return
        head = bytes(self.data[: end + len(_END_OF_HEAD)])
        if _EXPECT.search(head):
            # It is answered here; the server would answer it only after the body.
            self.is_asked_to_wait = True
            head, rest = _EXPECT.sub(b"", head), self.data[end + len(_END_OF_HEAD) :]
            self.data = bytearray(head) + rest
        self._body = self._at = len(head)
        length = _LENGTH.search(head)
        self._length = None if _CHUNKED.search(head) else int(length.group(1)) if length else 0

    @property
    def is_complete(self) -> bool:
        """Whether a thread can work on it without waiting, or has to refuse it as it is."""
        if self._body is None:
            return len(self.data) > _HEAD_LIMIT
        if self._length is None:
            return len(self.data) - self._body > BODY_LIMIT + _HEAD_LIMIT or self._has_last_chunk()
        return self._length > BODY_LIMIT or len(self.data) >= self._body + self._length

    @property
    def is_hopeless(self) -> bool:
        """Whether it is no request, and whoever tried to read it might wait for its end."""
        if self._body is None:
            return not _BEGINNING.match(self.data)
        rest = self.data[self._at :]
        return self._length is None and len(rest) > _PIECE and b"\r\n" not in rest[:_PIECE]

    def _has_last_chunk(self) -> bool:
        while found := _SIZE.match(self.data, self._at):
            size = int(found.group(1), 16)
            if size == 0:
                return self.data.find(_END_OF_HEAD, found.end() - 2) >= 0
            following = found.end() + size + 2
            if following > len(self.data):
                return False
            self._at = following
        # What cannot be the beginning of a chunk is refused by whoever reads it.
        return b"\r\n" in self.data[self._at : self._at + _PIECE]


@dataclass(slots=True)
class Gathering:
    """A connection whose request has not come completely."""

    conn: Any
    started: float
    request: Gathered = field(default_factory=Gathered)
    is_watched: bool = False

    def is_over(self, now: float, *, is_stopping: bool) -> bool:
        """Tell whether the client was too slow."""
        patience = STOPPING_SECONDS if is_stopping else PATIENCE_SECONDS + len(self.request.data) / LOWEST_RATE
        return now - self.started > patience


class PatientWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """Hands complete requests to the threads."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._gatherings: dict[int, Gathering] = {}

    def enqueue_req(self, conn: Any) -> None:
        """Gather the request that is coming on the connection; runs in the main loop."""
        if not conn.initialized:
            conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_SECONDS, 0))
        conn.init()
        conn.sock.setblocking(False)
        gathering = Gathering(conn, time.monotonic())
        gathering.request.take(conn.parser.unreader.take_buffered())
        self._gatherings[id(conn)] = gathering
        self._advance(gathering)

    def _advance(self, gathering: Gathering) -> None:
        try:
            is_open = self._receive(gathering)
        except BlockingIOError:
            self._watch(gathering)
        except OSError:
            self._drop(gathering)
        else:
            if is_open or gathering.request.data:
                self._hand_on(gathering)
            else:
                self._drop(gathering)

    def _receive(self, gathering: Gathering) -> bool:
        """Take what is there; true once the request is complete, false when the client has ended."""
        request = gathering.request
        while not request.is_complete:
            piece = gathering.conn.sock.recv(_PIECE)
            if not piece:
                return False
            request.take(piece)
            if request.is_hopeless:
                raise ConnectionAbortedError("this is no request")
            if request.is_asked_to_wait:
                request.is_asked_to_wait = False
                gathering.conn.sock.send(_CONTINUE)
            if self._gathered() > GATHERED_LIMIT:
                raise ConnectionAbortedError("too much is being gathered")
        return True

    def _gathered(self) -> int:
        return sum(len(each.request.data) for each in self._gatherings.values())

    def _watch(self, gathering: Gathering) -> None:
        if not gathering.is_watched:
            gathering.is_watched = True
            self.poller.register(gathering.conn.sock, selectors.EVENT_READ, lambda _: self._advance(gathering))

    def _forget(self, gathering: Gathering) -> None:
        if gathering.is_watched:
            gathering.is_watched = False
            self.poller.unregister(gathering.conn.sock)
        self._gatherings.pop(id(gathering.conn), None)

    def _hand_on(self, gathering: Gathering) -> None:
        self._forget(gathering)
        gathering.conn.parser.unreader.unread(bytes(gathering.request.data))
        gathering.conn.data_ready = True
        super().enqueue_req(gathering.conn)

    def _drop(self, gathering: Gathering) -> None:
        self._forget(gathering)
        self.nr_conns -= 1
        gathering.conn.close()

    def murder_pending(self) -> None:
        """Cut off who is too slow; gunicorn calls this every second."""
        super().murder_pending()
        now = time.monotonic()
        slow = [each for each in self._gatherings.values() if each.is_over(now, is_stopping=not self.alive)]
        for gathering in slow:
            self._drop(gathering)
