"""Whether this process is alive, and whether it can do its work.

`/healthz` is for whoever restarts processes: it looks at nothing that a restart would not mend, and tells the
workers' state as a detail. `/readyz` is for whoever sends requests: the store answers, its tables are there, the keys
can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from ledger.key_ring import key_ring
from reversi_sdk.errors import ReversiError
from reversi_site import schedules, store
from reversi_site.errors import is_database_unavailable

FINE = "ok"


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """Answer that the process is alive."""
    return JsonResponse({"status": FINE, "worker": _outcome(_worker)})


@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """Answer whether requests can be served, and what is missing."""
    checks: Mapping[str, str] = {"store": _outcome(_store), "keys": _outcome(_keys)}
    is_ready = all(outcome == FINE for outcome in checks.values())
    worker = _outcome(_worker) if is_ready else "unknown"
    body = {"status": FINE if is_ready else "unavailable", "checks": checks, "worker": worker}
    return JsonResponse(body, status=HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE)


def _outcome(check: Callable[[], str]) -> str:
    try:
        return check()
    except ReversiError as error:
        return error.code
    except Exception as error:
        if not is_database_unavailable(error):
            raise
        return "unavailable"


def _store() -> str:
    return "not migrated" if store.pending_migrations() else FINE


def _keys() -> str:
    return FINE if key_ring().current_id else "missing"


def _worker() -> str:
    age = schedules.heartbeat_age_ms()
    if age is None:
        return "never seen"
    return FINE if age < schedules.HEARTBEAT_RED_MS else "silent"
