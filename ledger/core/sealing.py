"""How undo handles are sealed: AES-256-GCM under a rotating ring, bound to run, step, manifest and key (D14)."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from ledger.core.handles import Handle, HandleLost
from reversi_sdk.canonical import canonical_bytes

NONCE_BYTES = 12


@dataclass(frozen=True, slots=True)
class SealedHandle:
    """A handle as stored: ciphertext, nonce and the id of the key that sealed it."""

    key_id: str
    nonce: bytes
    ciphertext: bytes


@dataclass(frozen=True, slots=True)
class Binding:
    """What a sealed handle belongs to: it opens nowhere else."""

    run_id: str
    number: int
    manifest_checksum: str | None


class KeyRing:
    """The keys by id, the current one first; derived keys keep each use apart from the others."""

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        self._sealing = {key_id: derive_key(key, b"undo handle") for key_id, key in keys.items()}
        self._digests = {key_id: derive_key(key, b"undo handle digest") for key_id, key in keys.items()}
        self.current_id = next(iter(keys))

    def seal(self, handle: Handle, binding: Binding, nonce: bytes) -> SealedHandle:
        """Seal under the current key; `nonce` must be fresh and random."""
        data = _associated(binding, self.current_id)
        text = AESGCM(self._sealing[self.current_id]).encrypt(nonce, handle.to_bytes(), data)
        return SealedHandle(self.current_id, nonce, text)

    def open(self, sealed: SealedHandle, binding: Binding, digest: str | None) -> Handle | HandleLost:
        """Return the handle when it decrypts here and matches `digest`, else why it is lost."""
        key = self._sealing.get(sealed.key_id)
        if key is None:
            return HandleLost(f"the undo handle is sealed with key {sealed.key_id}, which is not in the key ring")
        try:
            plain = AESGCM(key).decrypt(sealed.nonce, sealed.ciphertext, _associated(binding, sealed.key_id))
        except InvalidTag:
            return HandleLost("the undo handle does not decrypt: it was altered or belongs to another step")
        if digest is None or not hmac.compare_digest(self._digest(plain, sealed.key_id), digest):
            return HandleLost("the undo handle does not match the journal")
        return Handle.from_bytes(plain)

    def digest(self, handle: Handle) -> str:
        """Return the keyed digest of the plaintext that the journal carries."""
        return self._digest(handle.to_bytes(), self.current_id)

    def _digest(self, plain: bytes, key_id: str) -> str:
        return hmac.new(self._digests[key_id], plain, hashlib.sha256).hexdigest()


def derive_key(key: bytes, purpose: bytes) -> bytes:
    """Return the key for one use, from which no other use's key can be told."""
    return HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=b"reversi " + purpose).derive(key)


def _associated(binding: Binding, key_id: str) -> bytes:
    return canonical_bytes([binding.run_id, binding.number, binding.manifest_checksum, key_id])
