"""The deployment's key ring for undo handles, from the settings."""

from __future__ import annotations

import functools

from django.conf import settings

from ledger.core.sealing import KeyRing


def key_ring() -> KeyRing:
    """Return the ring; its current key seals, every key in it opens."""
    return _derived(tuple(settings.REVERSI_LEDGER_KEYS.items()))


@functools.lru_cache(maxsize=4)
def _derived(keys: tuple[tuple[str, bytes], ...]) -> KeyRing:
    # Every use derives four keys from each of the ring's, which costs more than the sealing itself.
    return KeyRing(dict(keys))
