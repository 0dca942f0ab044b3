"""The idempotency key of a forward call, for tools that carry one (D41 b)."""

from __future__ import annotations

from reversi_sdk.canonical import canonical_bytes, sha256_hex
from reversi_sdk.model import Manifest


def forward_key(manifest: Manifest | None, given: str | None, *, run_id: str, number: int, tool: str) -> str | None:
    """Return the key to send: the caller's, else one of this step's own; None when the tool carries none."""
    if manifest is None or manifest.key_carrier is None:
        return None
    return given if given is not None else sha256_hex(canonical_bytes(["call", run_id, number, tool]))
