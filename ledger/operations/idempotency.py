"""Answer a repeated request like the first one: reserve its key, keep the answer sealed, purge it after a day.

The reservation is committed before the request is worked on, so of two that come together one is told to wait. A
process that dies in between leaves the reservation; it ends by the database's clock, and the request may then be
made again: what it did meanwhile is in the journal, not here.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import datetime

from django.conf import settings
from django.db import IntegrityError
from django.db.models import Q, QuerySet

from ledger.core.boxes import SealedBox
from ledger.core.errors import AnswerLost
from ledger.key_ring import open_box, seal
from ledger.models import IdempotentAnswer
from reversi_sdk.canonical import canonical_bytes, sha256_hex
from reversi_site.kit.api.answers import KeptAnswer, Reservation
from reversi_site.kit.api.errors import KeyInFlight, KeyReused
from reversi_site.kit.clock import DatabaseNowMs
from reversi_site.kit.transactions import durable

KEPT_MS = 24 * 60 * 60_000
# Longer than any request may take to be answered.
IN_FLIGHT_MS = 10 * 60_000
PURPOSE = "idempotent answer"
_SEPARATOR = b"\n"


def begin_answer(*, caller: str, route: str, key: str, body: bytes, now: datetime) -> KeptAnswer | Reservation:
    """Return the answer that was given to this request, or the right to give it.

    Raises KeyReused for another body under the key, KeyInFlight while the first request is being answered, and
    AnswerLost when the answer was given and can no longer be opened.
    """
    row = IdempotentAnswer(
        scope=sha256_hex(canonical_bytes([caller, route, key])),
        body_digest=_keyed_digest(body),
        token=secrets.token_hex(16),
    )
    with durable():
        IdempotentAnswer.objects.filter(_is_over(), pk=row.scope).delete()
        first = IdempotentAnswer.objects.filter(pk=row.scope).first()
        if first is None:
            return _reserve(row)
    if first.body_digest != row.body_digest:
        raise KeyReused
    return _open(first)


def _keyed_digest(body: bytes) -> str:
    # A plain digest would let whoever reads the table try out bodies.
    return hmac.new(settings.REVERSI_CALL_KEY_SECRET.encode(), b"body:" + body, hashlib.sha256).hexdigest()


def _is_over() -> Q:
    given = Q(started_ms__lt=DatabaseNowMs() - KEPT_MS)
    abandoned = Q(status__isnull=True, started_ms__lt=DatabaseNowMs() - IN_FLIGHT_MS)
    return given | abandoned


def _reserve(row: IdempotentAnswer) -> Reservation:
    try:
        IdempotentAnswer.objects.create(
            scope=row.scope, body_digest=row.body_digest, token=row.token, started_ms=DatabaseNowMs()
        )
    except IntegrityError as error:
        # Another process reserved it since we looked.
        raise KeyInFlight from error
    return Reservation(row.scope, row.token)


def _open(row: IdempotentAnswer) -> KeptAnswer:
    if row.status is None or row.key_id is None or row.nonce is None or row.ciphertext is None:
        raise KeyInFlight
    box = SealedBox(row.key_id, bytes(row.nonce), bytes(row.ciphertext))
    plain = open_box(box, purpose=PURPOSE, bound_to=[row.scope, str(row.status)])
    if plain is None:
        raise AnswerLost
    content_type, _, body = plain.partition(_SEPARATOR)
    return KeptAnswer(row.status, content_type.decode("ascii"), body)


def keep_answer(*, reservation: Reservation, answer: KeptAnswer) -> None:
    """Keep the first answer for a day; changes nothing when the reservation has ended meanwhile."""
    plain = answer.content_type.encode("ascii") + _SEPARATOR + answer.body
    box = seal(plain, purpose=PURPOSE, bound_to=[reservation.scope, str(answer.status)])
    with durable():
        _reserved(reservation).update(
            status=answer.status, key_id=box.key_id, nonce=box.nonce, ciphertext=box.ciphertext
        )


def forget_answer(*, reservation: Reservation) -> None:
    """End a reservation without an answer: the next request with the key is the first."""
    with durable():
        _reserved(reservation).delete()


def _reserved(reservation: Reservation) -> QuerySet[IdempotentAnswer]:
    return IdempotentAnswer.objects.filter(pk=reservation.scope, token=reservation.token, status__isnull=True)


def purge_answers(*, now: datetime) -> int:
    """Delete the answers whose day is over and the reservations that ended; returns how many."""
    with durable():
        deleted, _ = IdempotentAnswer.objects.filter(_is_over()).delete()
    return deleted
