"""Content that is kept apart, encrypted and purged soon: arguments waiting for approval, answers to be repeated.

AES-256-GCM under keys derived from the ledger's ring, one for each purpose, bound to what the content belongs to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ledger.core.sealing import derive_key
from reversi_sdk.canonical import canonical_bytes


@dataclass(frozen=True, slots=True)
class SealedBox:
    """Sealed content as stored."""

    key_id: str
    nonce: bytes
    ciphertext: bytes


class BoxRing:
    """The keys of one purpose by id, the current one first."""

    def __init__(self, keys: Mapping[str, bytes], purpose: str) -> None:
        self._keys = {key_id: derive_key(key, purpose.encode()) for key_id, key in keys.items()}
        self._current = next(iter(keys))

    def seal(self, plain: bytes, bound_to: Sequence[str], nonce: bytes) -> SealedBox:
        """Seal under the current key; `nonce` must be fresh and random."""
        text = AESGCM(self._keys[self._current]).encrypt(nonce, plain, _associated(bound_to, self._current))
        return SealedBox(self._current, nonce, text)

    def open(self, box: SealedBox, bound_to: Sequence[str]) -> bytes | None:
        """Return the content; None when its key is gone, or it was altered or belongs to something else."""
        key = self._keys.get(box.key_id)
        if key is None:
            return None
        try:
            return AESGCM(key).decrypt(box.nonce, box.ciphertext, _associated(bound_to, box.key_id))
        except InvalidTag:
            return None


def _associated(bound_to: Sequence[str], key_id: str) -> bytes:
    return canonical_bytes([*bound_to, key_id])
