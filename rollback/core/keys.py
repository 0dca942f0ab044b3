"""The compensation key and the pair of undo tool and arguments it belongs to (D21)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reversi_sdk.canonical import lenient_bytes
from rollback.core.steps import AttemptFact

# HMAC under the run's salt: equal values are recognised, and nothing can be guessed from the digest.
KeyedDigest = Callable[[bytes], str]


def compensation_key(*, run_id: str, step: int, tool: str, generation: int) -> str:
    """Return the key that is the same on every retry of one undo: never that of another pair of tool and arguments."""
    parts: list[str | int] = [run_id, step, tool]
    if generation > 0:
        parts.append(generation)
    text = json.dumps(parts, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def pair_digest(tool: str, arguments: Mapping[str, Any], keyed_digest: KeyedDigest) -> str:
    """Return what recognises this undo tool with exactly these arguments."""
    return keyed_digest(lenient_bytes([tool, dict(arguments)]))


def generation_of(pair: str, attempts: Sequence[AttemptFact]) -> int:
    """Return the pair's generation: its own when it was sent before, else the number of distinct pairs sent."""
    known = {attempt.pair: attempt.generation for attempt in attempts}
    return known.get(pair, len(known))
