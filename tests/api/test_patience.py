"""When a request that is being gathered is complete, and when its client was too slow."""

from __future__ import annotations

import pytest

from reversi_site.kit.api.documents import BODY_LIMIT
from reversi_site.patient_worker import LOWEST_RATE, PATIENCE_SECONDS, STOPPING_SECONDS, Gathered, Gathering

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"


def gathered(*pieces: bytes) -> Gathered:
    request = Gathered()
    for piece in pieces:
        request.take(piece)
    return request


WHOLE = {
    "no body": GET,
    "length": b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
    "length in any case": b"POST / HTTP/1.1\r\nCONTENT-LENGTH:3\r\n\r\nabc",
    "one chunk": CHUNKED + b"3\r\nabc\r\n0\r\n\r\n",
    "an end inside a chunk": CHUNKED + b"5\r\n0\r\n\r\n\r\n0\r\n\r\n",
    "chunk extension": CHUNKED + b"3;a=b\r\nabc\r\n0\r\n\r\n",
    "trailer": CHUNKED + b"3\r\nabc\r\n0\r\nX: y\r\n\r\n",
}


@pytest.mark.parametrize("whole", WHOLE.values(), ids=WHOLE)
def test_request_is_complete_with_its_last_byte_and_not_before(whole: bytes) -> None:
    request = Gathered()
    for position, byte in enumerate(whole):
        assert not request.is_complete, whole[:position]
        request.take(bytes([byte]))

    assert request.is_complete
    assert bytes(request.data) == whole


@pytest.mark.parametrize("whole", WHOLE.values(), ids=WHOLE)
def test_request_is_complete_with_what_follows_it(whole: bytes) -> None:
    assert gathered(whole + GET).is_complete


@pytest.mark.parametrize(
    "hopeless",
    [
        b"a" * 200_000,
        f"POST / HTTP/1.1\r\nContent-Length: {BODY_LIMIT + 1}\r\n\r\n".encode(),
        CHUNKED + b"zz\r\n",
    ],
)
def test_request_that_will_be_refused_is_not_waited_for(hopeless: bytes) -> None:
    assert gathered(hopeless).is_complete


@pytest.mark.parametrize("garbage", [b"\x16\x03\x01", b"\x00", b" GET", CHUNKED + b"a" * 100_000])
def test_what_is_no_request_is_not_handed_to_anybody(garbage: bytes) -> None:
    request = gathered(garbage)

    assert request.is_hopeless
    assert not request.is_complete


@pytest.mark.parametrize("whole", WHOLE.values(), ids=WHOLE)
def test_requests_are_never_hopeless(whole: bytes) -> None:
    assert not any(gathered(whole[:end]).is_hopeless for end in range(len(whole) + 1))


def test_endless_chunks_are_not_gathered_endlessly() -> None:
    request = gathered(CHUNKED)
    while not request.is_complete:
        request.take(b"10000\r\n" + b"a" * 65536 + b"\r\n")

    assert BODY_LIMIT < len(request.data) < 2 * BODY_LIMIT


def test_expectation_is_met_here_and_taken_out_of_the_head() -> None:
    request = gathered(b"POST / HTTP/1.1\r\nExpect: 100-Continue\r\nContent-Length: 3\r\n\r\na")

    assert request.is_asked_to_wait
    assert bytes(request.data) == b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\na"


@pytest.mark.parametrize(
    ("size", "seconds", "is_stopping", "is_over"),
    [
        (0, PATIENCE_SECONDS, False, False),
        (0, PATIENCE_SECONDS + 1, False, True),
        (10 * LOWEST_RATE, PATIENCE_SECONDS + 9, False, False),
        (10 * LOWEST_RATE, PATIENCE_SECONDS + 11, False, True),
        (10 * LOWEST_RATE, STOPPING_SECONDS + 1, True, True),
    ],
)
def test_patience_grows_with_what_was_sent(size: int, seconds: float, is_stopping: bool, is_over: bool) -> None:
    gathering = Gathering(None, 100.0)
    gathering.request.take(b"a" * size)

    assert gathering.is_over(100.0 + seconds, is_stopping=is_stopping) is is_over
