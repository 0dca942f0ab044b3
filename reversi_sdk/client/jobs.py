"""Work that the server does by itself: start it, watch it, and return its report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from reversi_sdk.client import routes
from reversi_sdk.client.delivery import Delivery
from reversi_sdk.client.effects import Flow, Invoke, Pause
from reversi_sdk.client.errors import JobFailed, JobStillRunning
from reversi_sdk.client.wire import Document, Request

FIRST_LOOK_MS = 100
LONGEST_LOOK_MS = 2_000
LIVE = ("queued", "running")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a rollback is; of one that this process makes, also which step was left, and how."""

    done: int
    total: int
    step: int | None = None
    tool: str | None = None
    word: str | None = None


OnProgress = Callable[[Progress], Any]


def finished_job(
    delivery: Delivery, run_id: str, start: Request, *, on_progress: OnProgress | None, timeout_ms: int
) -> Flow[Document]:
    """Start a job and return it once it is done; raises JobFailed and JobStillRunning."""
    job = yield from delivery.documented(start)
    ends_ms, wait_ms = delivery.world.now_ms() + timeout_ms, FIRST_LOOK_MS
    wanted, told = job.get("job"), None
    while True:
        shown = yield from delivery.documented(routes.get_rollback(run_id))
        # Another job may have been started since; only the one of this caller counts.
        job = shown if shown.get("job") == wanted else job
        progress = _progress(job)
        if on_progress is not None and progress != told:
            yield Invoke(partial(on_progress, progress))
            told = progress
        if job.get("state") not in LIVE:
            return _done(job)
        if delivery.world.now_ms() > ends_ms:
            raise JobStillRunning(job)
        yield Pause(wait_ms)
        wait_ms = min(LONGEST_LOOK_MS, wait_ms * 3 // 2)


def _progress(job: Document) -> Progress:
    shown: Document = job.get("progress") or {}
    return Progress(done=int(shown.get("done") or 0), total=int(shown.get("total") or 0))


def _done(job: Document) -> Document:
    if job.get("state") != "done":
        raise JobFailed(job)
    return job
