"""The work on a run as a value: one live job at a time (D23)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from rollback.core.options import RollbackOptions


class JobKind(StrEnum):
    """What a job does to its run."""

    ROLLBACK = "rollback"
    VERIFY = "verify"
    RESOLVE = "resolve"
    COMPENSATION = "compensation"


class JobState(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


LIVE = (JobState.QUEUED, JobState.RUNNING)
# How long a job is left to whoever should do it before anybody else sees to it.
PATIENCE = timedelta(seconds=60)


def gives_way(queued_kind: JobKind, queued: RollbackOptions, kind: JobKind, wanted: RollbackOptions) -> bool:
    """Tell whether a job that waits, or was left by its worker, gives way to another: nothing may be lost by it."""
    if queued_kind is JobKind.ROLLBACK:
        return kind is JobKind.ROLLBACK and _does_as_much(wanted, queued)
    # A rollback also makes the read-backs that are open.
    return kind is queued_kind or (kind is JobKind.ROLLBACK and wanted.selection in (None, queued.selection))


def _does_as_much(wanted: RollbackOptions, queued: RollbackOptions) -> bool:
    grants = (
        (wanted.closes, queued.closes),
        (wanted.approves_compensations, queued.approves_compensations),
        (wanted.is_overwrite_allowed, queued.is_overwrite_allowed),
    )
    covers_steps = wanted.selection in (None, queued.selection)
    tries_as_often = wanted.retrying.attempts >= queued.retrying.attempts
    return covers_steps and tries_as_often and all(has or not had for has, had in grants)


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job as it stands; `fence` is the run's fence that it writes under, once it was claimed."""

    id: str
    run_id: str
    kind: JobKind
    state: JobState
    options: RollbackOptions
    is_foreground: bool
    requested_by: str
    worker: str
    fence: int | None
    done: int
    total: int
    report: Mapping[str, Any] | None
    error: str | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    waiting_for: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the job as the interface shows it."""
        return {
            "job": self.id,
            "run_id": self.run_id,
            "kind": self.kind.value,
            "state": self.state.value,
            "progress": {"done": self.done, "total": self.total},
            "report": self.report,
            "error": self.error,
            "waiting_for": self.waiting_for,
        }
