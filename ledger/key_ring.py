"""The deployment's key ring for undo handles, from the settings."""

from __future__ import annotations

from django.conf import settings

from ledger.core.sealing import KeyRing


def key_ring() -> KeyRing:
    """Return the ring; its current key seals, every key in it opens."""
    return KeyRing(settings.REVERSI_LEDGER_KEYS)
