"""Which exceptions leave it unknown whether a call had its effect (D12, D39).

`EffectUncertainError`, anything that a transport raises, and an interruption do. Libraries raise their lost connections
as classes of their own, so those are known by name: a lost answer must not pass for a call that did nothing.
"""

from __future__ import annotations

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


def is_answer_lost(error: BaseException) -> bool:
    """Tell whether nobody can say, after this exception out of a tool's function, if the effect happened."""
    if isinstance(error, (EffectUncertainError, TimeoutError, ConnectionError)) or not isinstance(error, Exception):
        return True
    names = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__}
    return not TRANSPORT_ERRORS.isdisjoint(names)
