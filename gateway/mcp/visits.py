"""Who asks, as far as any door of the gateway can tell: one request of one client."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.shared.dispatcher import ProgressFnT

from approvals.core.people import Act, Caller, may
from gateway.core.run_names import client_name
from gateway.operations.runs import RunTerms

Request = ServerRequestContext[Any, Any]

# What a caller's `_meta` may say to the upstream besides the key: where its trace goes on.
TRACE = ("traceparent", "tracestate", "baggage")


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One request.

    `outside` is the run that a header or an option names; `connection` is what the handle of `reversi.run` belongs to;
    `meta` is the request's own; `report` tells the client how far its request is, where it asked for that.
    """

    caller: Caller
    terms: RunTerms
    connection: Hashable
    is_operator: bool
    outside: str | None
    meta: Mapping[str, Any]
    report: ProgressFnT | None

    @property
    def may_call(self) -> bool:
        """Whether the tools of the upstreams are the caller's to use."""
        return may(self.caller, Act.CALL)

    @property
    def trace(self) -> Mapping[str, str]:
        """What goes upstream of the request's `_meta`."""
        return {key: self.meta[key] for key in TRACE if isinstance(self.meta.get(key), str)}

    @property
    def idempotency_key(self) -> Any:
        """The key that the caller gave the call; the gate judges whether it can be one."""
        return self.meta.get("idempotency_key")


def meta_of(request: Request) -> Mapping[str, Any]:
    """Return the request's `_meta` as it was sent."""
    meta = (request.params or {}).get("_meta")
    return meta if isinstance(meta, Mapping) else {}


def client_of(request: Request) -> str:
    """Return what the client calls itself."""
    params = request.session.client_params
    return client_name(None if params is None else params.client_info.name)


def reporter_of(request: Request) -> ProgressFnT | None:
    """Return what tells the client how far its request is; None when it did not ask for that."""
    return request.session.report_progress if "progressToken" in meta_of(request) else None


VisitOf = Callable[[Request], Visit]
