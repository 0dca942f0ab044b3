"""How often, and after which waits, a harmless call is repeated inside one step (D12).

A `retry` block speaks for read_only and idempotent tools only; undos have rules of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

from reversi_sdk.model import Effect, Manifest

HARMLESS = frozenset({Effect.READ_ONLY, Effect.IDEMPOTENT})


def waits_ms(manifest: Manifest | None) -> Iterator[int]:
    """Yield the wait before each repetition; nothing for a call that must be made once."""
    retry = manifest.retry if manifest is not None and manifest.effect in HARMLESS else None
    if retry is None:
        return
    for repetition in range(retry.attempts - 1):
        yield min(retry.max_ms, retry.base_ms * 2**repetition)
