"""What the end of a tool's function says about the effect of its call (D12, D39).

A return value is a success. `EffectUncertainError` and anything that a transport raises leave the outcome unknown;
every other exception is a definite failure. Libraries raise their lost connections as classes of their own, so those
are known by name: a lost answer must not pass for a call that did nothing.
"""

from __future__ import annotations

from typing import Any

from ledger.core.statuses import StepState
from reversi_sdk.errors import EffectUncertainError

TRANSPORT_ERRORS = frozenset(
    {
        "aiohttp.client_exceptions.ClientConnectionError",
        "aiohttp.client_exceptions.ClientPayloadError",
        "http.client.HTTPException",
        "httpcore.NetworkError",
        "httpcore.ProtocolError",
        "httpcore.TimeoutException",
        "httpx.TransportError",
        "requests.exceptions.ChunkedEncodingError",
        "requests.exceptions.ConnectionError",
        "requests.exceptions.Timeout",
        "urllib3.exceptions.ProtocolError",
        "urllib3.exceptions.TimeoutError",
    }
)
TOO_MANY_REQUESTS = 429
SERVER_ERRORS = range(500, 600)


def outcome_of_error(error: BaseException) -> StepState:
    """Return what an exception out of a tool's function says: `failed`, or `uncertain`."""
    if isinstance(error, (EffectUncertainError, TimeoutError, ConnectionError)) or not isinstance(error, Exception):
        return StepState.UNCERTAIN
    names = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__}
    return StepState.FAILED if TRANSPORT_ERRORS.isdisjoint(names) else StepState.UNCERTAIN


def is_repeatable(error: BaseException) -> bool:
    """Tell whether a harmless call may be made again: nothing was heard, or the server said that it was busy."""
    if not isinstance(error, Exception):
        return False
    status: Any = getattr(error, "status", None)
    is_busy = status == TOO_MANY_REQUESTS or (isinstance(status, int) and status in SERVER_ERRORS)
    return is_busy or outcome_of_error(error) is StepState.UNCERTAIN
