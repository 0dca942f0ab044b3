"""The client of a Reversi server: an agent's calls made through its gate, planned and rolled back from Python.

`Client` is for programs that wait, `AsyncClient` for event loops; both drive the same rules. Everything is imported on
first use: the manifest language needs no network library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reversi_sdk.client.async_client import AsyncClient, AsyncRun
    from reversi_sdk.client.calling import Made
    from reversi_sdk.client.client import Client, Run
    from reversi_sdk.client.delivery import Patience
    from reversi_sdk.client.errors import (
        ApprovalRequired,
        CallBlocked,
        EmbeddedServerFailed,
        JobFailed,
        JobStillRunning,
        OutcomeNotReported,
        Refusal,
        ServerUnreachable,
    )
    from reversi_sdk.client.jobs import Progress

PLACES = {
    "ApprovalRequired": "errors",
    "AsyncClient": "async_client",
    "AsyncRun": "async_client",
    "CallBlocked": "errors",
    "Client": "client",
    "EmbeddedServerFailed": "errors",
    "JobFailed": "errors",
    "JobStillRunning": "errors",
    "Made": "calling",
    "OutcomeNotReported": "errors",
    "Patience": "delivery",
    "Progress": "jobs",
    "Refusal": "errors",
    "Run": "client",
    "ServerUnreachable": "errors",
}
__all__ = [
    "ApprovalRequired",
    "AsyncClient",
    "AsyncRun",
    "CallBlocked",
    "Client",
    "EmbeddedServerFailed",
    "JobFailed",
    "JobStillRunning",
    "Made",
    "OutcomeNotReported",
    "Patience",
    "Progress",
    "Refusal",
    "Run",
    "ServerUnreachable",
]


def __getattr__(name: str) -> Any:
    if name not in PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{PLACES[name]}"), name)
