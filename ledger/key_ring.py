"""The deployment's key ring from the settings: for undo handles, and for other content that is kept sealed."""

from __future__ import annotations

import functools
import secrets
from collections.abc import Sequence

from django.conf import settings

from ledger.core.boxes import BoxRing, SealedBox
from ledger.core.sealing import NONCE_BYTES, KeyRing


def key_ring() -> KeyRing:
    """Return the ring; its current key seals, every key in it opens."""
    return _derived(tuple(settings.REVERSI_LEDGER_KEYS.items()))


@functools.lru_cache(maxsize=4)
def _derived(keys: tuple[tuple[str, bytes], ...]) -> KeyRing:
    # Every use derives four keys from each of the ring's, which costs more than the sealing itself.
    return KeyRing(dict(keys))


def seal(plain: bytes, *, purpose: str, bound_to: Sequence[str]) -> SealedBox:
    """Seal content that opens only for the same purpose and bound to the same things."""
    return _boxes(tuple(settings.REVERSI_LEDGER_KEYS.items()), purpose).seal(
        plain, bound_to, secrets.token_bytes(NONCE_BYTES)
    )


def open_box(box: SealedBox, *, purpose: str, bound_to: Sequence[str]) -> bytes | None:
    """Return sealed content; None when it was altered, belongs elsewhere, or its key left the ring."""
    return _boxes(tuple(settings.REVERSI_LEDGER_KEYS.items()), purpose).open(box, bound_to)


@functools.lru_cache(maxsize=16)
def _boxes(keys: tuple[tuple[str, bytes], ...], purpose: str) -> BoxRing:
    return BoxRing(dict(keys), purpose)
