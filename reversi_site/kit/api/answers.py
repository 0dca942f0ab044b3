"""A repeated request is answered like the first one: what views need of whoever keeps the answers.

The key of a request is the header `Idempotency-Key`; it belongs to its caller and its route. Kept is what an
operation answered. What only asks for the request again, mended or later, is not: the repeat shall be looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from typing import Protocol, cast

from django.conf import settings
from rest_framework.request import Request

from reversi_site.kit.api.errors import KeyMalformed

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
LONGEST_KEY = 255
KEPT_REFUSALS = frozenset({403, 404, 409})


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """The first answer, as it was."""

    status: int
    content_type: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Reservation:
    """The right to give the first answer."""

    scope: str
    token: str


class Answers(Protocol):
    """What `settings.API_ANSWERS` names: a module with these functions."""

    def begin_answer(
        self, *, caller: str, route: str, key: str, body: bytes, now: datetime
    ) -> KeptAnswer | Reservation:
        """Return the kept answer, or the right to give it; raises KeyReused and KeyInFlight."""

    def keep_answer(self, *, reservation: Reservation, answer: KeptAnswer) -> None:
        """Keep the answer for those who repeat the request."""

    def forget_answer(self, *, reservation: Reservation) -> None:
        """Let the next request with the key be the first."""


def kept_answers() -> Answers:
    """Return whoever keeps answers in this deployment."""
    return cast(Answers, import_module(settings.API_ANSWERS))


def idempotency_key(request: Request) -> str | None:
    """Return the request's key; raises KeyMalformed."""
    key = request.headers.get(HEADER)
    if key is None:
        return None
    if not (1 <= len(key) <= LONGEST_KEY and all("!" <= character <= "~" for character in key)):
        raise KeyMalformed
    return key


def is_kept(status: int, *, is_refusal: bool) -> bool:
    """Tell whether an answer is the answer to every repeat; a call that waits for approval is refused with a 202."""
    return status in KEPT_REFUSALS if is_refusal else 200 <= status < 300
