"""Requests and answers as values: what is sent, what came back, and whether it may be sent again.

Every POST carries an `Idempotency-Key`, so the server answers a repetition with its first answer and does nothing
twice. That makes every request of this client repeatable, and only what says that nothing final was answered is
repeated: no connection, no answer in time, a busy server, the first one still in flight.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reversi_sdk.client.errors import (
    AnswerNotUnderstood,
    Forbidden,
    InConflict,
    NothingThere,
    NotSignedIn,
    Refusal,
    RequestRefused,
    ServerBroke,
    ServerBusy,
)

Document = dict[str, Any]
IN_FLIGHT = "idempotency_key_in_flight"
BUSY = frozenset({429, 502, 503, 504})
_KINDS: Mapping[int, type[Refusal]] = {401: NotSignedIn, 403: Forbidden, 404: NothingThere, 409: InConflict}


@dataclass(frozen=True, slots=True)
class Request:
    """One request to the API; `extra_wait_ms` is how long the server may take on purpose."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    params: tuple[tuple[str, str], ...] = ()
    key: str | None = None
    extra_wait_ms: int = 0

    @property
    def content(self) -> bytes | None:
        """The body as bytes."""
        return None if self.body is None else json.dumps(self.body, allow_nan=False).encode("ascii")

    @property
    def headers(self) -> dict[str, str]:
        """The headers that belong to the request itself."""
        headers = {"Accept": "application/json, application/problem+json"}
        if self.body is not None:
            headers["Content-Type"] = "application/json"
        if self.key is not None:
            headers["Idempotency-Key"] = self.key
        return headers


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; names of headers are lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes = b""

    @property
    def document(self) -> Document:
        """The body as a JSON object; raises AnswerNotUnderstood for anything else."""
        try:
            value = json.loads(self.content)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise AnswerNotUnderstood(f"the server answered {self.status} with something that is not a JSON object")
        return value

    @property
    def is_passing(self) -> bool:
        """Whether the same request may be answered otherwise in a moment."""
        return self.status in BUSY or (self.status == 409 and self.problem.get("code") == IN_FLIGHT)

    @property
    def problem(self) -> Document:
        """The problem document, or nothing where a proxy answered in words of its own."""
        try:
            return self.document
        except AnswerNotUnderstood:
            return {}

    @property
    def retry_after_ms(self) -> int:
        """How long the server asks to wait; only whole seconds are understood."""
        text = self.headers.get("retry-after", "")
        return int(text) * 1000 if text.isascii() and text.isdecimal() else 0


def judge(answer: Answer) -> Document:
    """Return the document of a success; raises what the problem means."""
    if 200 <= answer.status < 300:
        return answer.document
    raise refusal(answer)


def refusal(answer: Answer) -> Refusal | AnswerNotUnderstood:
    """Return the error that an answer other than a success means."""
    if answer.status < 400:
        return AnswerNotUnderstood(f"the server answered {answer.status}: is the address that of the server itself?")
    kind = _KINDS.get(answer.status, RequestRefused if answer.status < 500 else ServerBroke)
    return (ServerBusy if answer.status in BUSY else kind)(answer.problem, status=answer.status)
