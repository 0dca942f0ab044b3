"""What stands around every page: where one can go, what is halted, how the worker is, which deployment this is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from approvals.core.people import Act, Caller, may
from approvals.core.requests import RequestState
from approvals.queries import kill_reason, list_approvals, list_halts
from ledger.overview import count_runs_needing_attention
from reversi_site.console.words import duration
from reversi_site.schedules import HEARTBEAT_RED_MS, heartbeat_age_ms

MOST = 99
_LOUD = ("prod", "live")
_NEAR = ("stag", "preprod", "uat")


@dataclass(frozen=True, slots=True)
class Item:
    """A place in the menu; `count` says how much waits there and `meaning` what of."""

    label: str
    address: str
    is_here: bool
    count: str = ""
    tone: str = ""
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Menu:
    """The places that the caller may go to."""

    items: tuple[Item, ...]
    has_runs: bool
    has_halts: bool


@dataclass(frozen=True, slots=True)
class Waiting:
    """How much waits for a person."""

    runs: int = 0
    approvals: int = 0
    halts: int = 0


@dataclass(frozen=True, slots=True)
class WorkerState:
    """Whether rollbacks would be carried out."""

    tone: str
    words: str
    is_alive: bool


def frame_of(request: HttpRequest, caller: Caller, now: datetime) -> dict[str, Any]:
    """Return what the frame shows, in a fixed number of queries."""
    halts = list_halts() if may(caller, Act.LIST_HALTS) else []
    waiting = Waiting(runs=_runs_waiting(caller), approvals=len(votable(caller, now, limit=MOST + 1)), halts=len(halts))
    by_file = kill_reason(settings.CONFIGURATION.kill_switch_file)
    return {
        "caller": caller,
        "nav": _menu(request.path, caller, waiting),
        "waiting": waiting,
        "standing_halts": halts,
        "kill_file_reason": by_file,
        "is_all_halted": by_file is not None or any(not halt.scope.to_json() for halt in halts),
        "worker": worker_state(heartbeat_age_ms()),
        "environment_name": settings.REVERSI_ENVIRONMENT,
        "environment_tone": environment_tone(settings.REVERSI_ENVIRONMENT),
        "role_words": ", ".join(sorted(caller.roles)),
    }


def owner_filter(caller: Caller) -> str | None:
    """Return whose runs the caller may see: None for everybody's."""
    return None if may(caller, Act.READ_ANY_RUN) else caller.username


def _runs_waiting(caller: Caller) -> int:
    if not (may(caller, Act.READ_ANY_RUN) or may(caller, Act.READ_OWN_RUN)):
        return 0
    return count_runs_needing_attention(principal=owner_filter(caller), limit=MOST + 1)


def votable(caller: Caller, now: datetime, *, limit: int) -> list[Any]:
    """Return the requests that wait and that the caller may see."""
    return list(list_approvals(caller=caller, now=now, states=(RequestState.PENDING,), limit=limit))


def _menu(path: str, caller: Caller, waiting: Waiting) -> Menu:
    has_runs = may(caller, Act.READ_ANY_RUN) or may(caller, Act.READ_OWN_RUN)
    has_halts = may(caller, Act.LIST_HALTS)
    places = (
        (True, "Home", "index", 0, "", ""),
        (has_runs, "Runs", "runs", waiting.runs, "bad", "need attention"),
        (True, "Approvals", "approvals", waiting.approvals, "warn", "are waiting"),
        (has_halts, "Halts", "halts", waiting.halts, "bad", "stand"),
        (may(caller, Act.LIST_KEYS) or may(caller, Act.MANAGE_KEYS), "API keys", "keys", 0, "", ""),
        (may(caller, Act.MANAGE_PEOPLE), "People", "people", 0, "", ""),
        (may(caller, Act.EXPORT), "Governance log", "governance", 0, "", ""),
        (may(caller, Act.EXPORT), "Records", "records", 0, "", ""),
    )
    home = reverse("admin:index")
    items = []
    for is_shown, label, route, count, tone, meaning in places:
        if is_shown:
            where = reverse(f"admin:{route}")
            is_here = path == where or (where != home and path.startswith(where))
            items.append(Item(label, where, is_here, _count(count), tone, meaning))
    return Menu(tuple(items), has_runs, has_halts)


def _count(count: int) -> str:
    if not count:
        return ""
    return str(count) if count <= MOST else f"{MOST}+"


def worker_state(age_ms: int | None) -> WorkerState:
    """Return how the workers are, by the age of the last sign of life."""
    if age_ms is None:
        return WorkerState("bad", "No worker has been seen yet", is_alive=False)
    seen = duration(timedelta(milliseconds=max(age_ms, 0)))
    if age_ms > HEARTBEAT_RED_MS:
        return WorkerState("bad", f"No worker for {seen}", is_alive=False)
    return WorkerState("good", f"Worker seen {seen} ago", is_alive=True)


def environment_tone(name: str) -> str:
    """Return how loud a deployment's name is shown."""
    lower = name.lower()
    if lower.startswith(_LOUD):
        return "bad"
    return "warn" if lower.startswith(_NEAR) else "quiet"
