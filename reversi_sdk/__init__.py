"""The ground floor of Reversi: the manifest language, and the client of a server.

What an agent, a build or a connector needs. The client is imported on first use, since most need no network library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reversi_sdk.errors import EffectUncertainError, ReversiError
from reversi_sdk.manifests import validate_manifest

if TYPE_CHECKING:
    from reversi_sdk.client import (
        ApprovalRequired,
        AsyncClient,
        AsyncRun,
        CallBlocked,
        Client,
        EmbeddedServerFailed,
        JobFailed,
        JobStillRunning,
        Made,
        OutcomeNotReported,
        Patience,
        Progress,
        Refusal,
        Run,
        ServerUnreachable,
    )

__all__ = [
    "ApprovalRequired",
    "AsyncClient",
    "AsyncRun",
    "CallBlocked",
    "Client",
    "EffectUncertainError",
    "EmbeddedServerFailed",
    "JobFailed",
    "JobStillRunning",
    "Made",
    "OutcomeNotReported",
    "Patience",
    "Progress",
    "Refusal",
    "ReversiError",
    "Run",
    "ServerUnreachable",
    "validate_manifest",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from reversi_sdk import client

    return getattr(client, name)
