"""Create, claim, hold and end jobs: who may work on a run, and until when (D23).

A job's lease ends on the database's clock, so workers on many machines agree. Whoever claims a job takes a new fence
of the run in the same transaction; every later write names that fence. The run row is always locked before the job
row, so that an old and a new executor cannot wait for each other.

A queued rollback blocks new calls already. Whatever ends a queued job takes the run in the same transaction, or is
the executor that took it, and gives it back when it ends itself: so calls pass again however the job ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q

from ledger.core.errors import FenceLost
from ledger.core.text import make_visible
from ledger.identifiers import new_ulid
from ledger.operations.journal import lock_run
from ledger.operations.runs import announce_rollback, release_run, take_run
from reversi_sdk.model import Manifest
from reversi_site.kit.clock import DatabaseNowMs
from reversi_site.kit.transactions import durable, require_transaction
from rollback.core.errors import PlanStale, RollbackRunning
from rollback.core.jobs import LIVE, PATIENCE, JobKind, JobRecord, JobState, gives_way
from rollback.core.options import RollbackOptions
from rollback.core.report import Refused
from rollback.dispatch import enqueue_job
from rollback.models import RollbackJob
from rollback.queries import get_plan, job_record, load_steps

LEASE_MARGIN_MS = 30_000
Described = Mapping[str, Manifest]
ERROR = 2000


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to work on a run: the job, and the fence that every write must name."""

    job: JobRecord
    fence: int
    actor: str

    @property
    def run_id(self) -> str:
        """The run that is worked on."""
        return self.job.run_id


def start_rollback(*, run_id: str, actor: str, now: datetime, options: RollbackOptions | None = None) -> JobRecord:
    """Queue a rollback for the workers; from now on the run takes no calls until the job has ended.

    Raises RollbackRunning while another job waits or works on the run, and PlanStale when `options.digest` is not the
    digest of the present plan. It is compared again when the job starts: calls in flight may have ended meanwhile.
    """
    wanted = options or RollbackOptions()
    require_digest(run_id, wanted, now)
    return _start(JobKind.ROLLBACK, run_id, wanted, actor, now)


def start_verification(*, run_id: str, actor: str, now: datetime) -> JobRecord:
    """Queue the open read-backs of a run; raises RollbackRunning."""
    return _start(JobKind.VERIFY, run_id, RollbackOptions(), actor, now)


def require_digest(run_id: str, options: RollbackOptions, now: datetime) -> None:
    """Raise PlanStale unless the plan is the one that was looked at; raises SelectionInvalid too."""
    current = get_plan(run_id=run_id, now=now, selection=options.selection).digest
    if options.digest is not None and options.digest != current:
        raise PlanStale(run_id, options.digest, current)


def _start(kind: JobKind, run_id: str, options: RollbackOptions, actor: str, now: datetime) -> JobRecord:
    with durable():
        row = _insert(kind, run_id, options, actor, now, is_foreground=False)
        row.enqueued_at, row.enqueues = now, 1
        row.save(force_insert=True)
        if kind is JobKind.ROLLBACK:
            announce_rollback(run_id=run_id, data={"job": row.id}, actor=actor, now=now)
        enqueue_job(row.id)
    return job_record(row)


def claim_new(
    *,
    kind: JobKind,
    run_id: str,
    options: RollbackOptions,
    actor: str,
    worker: str,
    now: datetime,
    reaches_all: bool = True,
) -> Claim:
    """Make a job for this very process and claim it.

    A job that only waits in the queue gives way to one that does at least the same; else raises RollbackRunning. One
    that cannot reach all the tools (`reaches_all`) does less, so it takes over only what nobody saw to for a while.
    """
    with durable():
        row = _insert(kind, run_id, options, actor, now, is_foreground=True, reaches_all=reaches_all)
        row.save(force_insert=True)
        return _claim_locked(row, worker, now)


def claim_remote(*, run_id: str, actor: str, worker: str, lease_hash: str, now: datetime) -> Claim:
    """Make and claim the job of one undo that a remote worker runs, within the caller's block.

    Unlike a person's own process it waits for a job that is queued: raises RollbackRunning.
    """
    require_transaction()
    row = _insert(JobKind.COMPENSATION, run_id, RollbackOptions(), actor, now, is_foreground=False)
    # No worker of ours can go on with it: when its lease runs out it is ended.
    row.is_foreground, row.lease_hash, row.total = True, lease_hash, 1
    row.save(force_insert=True)
    return _claim_locked(row, worker, now)


def _insert(
    kind: JobKind,
    run_id: str,
    options: RollbackOptions,
    actor: str,
    now: datetime,
    *,
    is_foreground: bool,
    reaches_all: bool = True,
) -> RollbackJob:
    """Return a new job, unsaved, with the run locked and free of another live job; raises RollbackRunning."""
    lock_run(run_id)
    row = RollbackJob(
        id=f"job_{new_ulid(now)}",
        run_id=run_id,
        kind=kind,
        options=options.to_json(),
        is_foreground=is_foreground,
        requested_by=actor,
        created_at=now,
    )
    live = RollbackJob.objects.filter(run_id=run_id, state__in=LIVE)
    is_abandoned = Q(state=JobState.RUNNING, lease_until_ms__lt=DatabaseNowMs())
    left_alone = is_abandoned | Q(state=JobState.QUEUED) if is_foreground else is_abandoned
    other = live.filter(left_alone).first()
    is_left_to_others = not reaches_all and other is not None and other.created_at > now - PATIENCE
    if other is not None and not is_left_to_others and _gives_way(other, kind, options):
        taken = {"state": JobState.FAILED, "ended_at": now, "error": f"taken over by {row.id}"}
        live.filter(left_alone, pk=other.pk).update(**taken)
    other = live.first()
    if other is not None:
        raise RollbackRunning(run_id, other.id, other.state, other.waiting_for)
    return row


def _gives_way(other: RollbackJob, kind: JobKind, options: RollbackOptions) -> bool:
    # Nobody goes on with what a process did in its foreground and left: recovery would only end it.
    if other.is_foreground:
        return True
    return gives_way(JobKind(other.kind), RollbackOptions.from_json(other.options), kind, options)


def note_waiting(*, job_id: str, upstream: str) -> None:
    """Note on a queued job that only the gateway which holds this upstream's session can do it."""
    with durable():
        RollbackJob.objects.filter(pk=job_id, state=JobState.QUEUED).update(waiting_for=upstream)


def claim_job(*, job_id: str, worker: str, now: datetime) -> Claim | None:
    """Become the executor of a queued or abandoned job; None when it has ended or another one works on it."""
    with durable():
        row = RollbackJob.objects.filter(pk=job_id).first()
        if row is None or row.state not in LIVE:
            return None
        lock_run(row.run_id)
        return _claim_locked(row, worker, now) if _is_claimable(job_id) else None


def _is_claimable(job_id: str) -> bool:
    waits = Q(state=JobState.QUEUED) | Q(state=JobState.RUNNING, lease_until_ms__lt=DatabaseNowMs())
    return RollbackJob.objects.filter(waits, pk=job_id).exists()


def _claim_locked(row: RollbackJob, worker: str, now: datetime) -> Claim:
    fence = take_run(run_id=row.run_id, actor=row.requested_by, now=now)
    RollbackJob.objects.filter(pk=row.pk).update(
        state=JobState.RUNNING,
        worker=worker,
        waiting_for=None,
        fence=fence,
        lease_until_ms=DatabaseNowMs() + LEASE_MARGIN_MS,
        claims=row.claims + 1,
        started_at=row.started_at or now,
    )
    row.refresh_from_db()
    return Claim(job_record(row), fence, row.requested_by)


def hold(claim: Claim, *, busy_ms: int, done: int | None = None, total: int | None = None) -> None:
    """Renew the lease for work of at most `busy_ms`, within the caller's block; raises FenceLost."""
    require_transaction()
    changes = {name: value for name, value in {"done": done, "total": total}.items() if value is not None}
    held = RollbackJob.objects.filter(pk=claim.job.id, state=JobState.RUNNING, fence=claim.fence).update(
        lease_until_ms=DatabaseNowMs() + (busy_ms + LEASE_MARGIN_MS), **changes
    )
    if held != 1:
        raise FenceLost(claim.run_id, claim.fence)


def renew(claim: Claim, *, busy_ms: int, done: int | None = None, total: int | None = None) -> None:
    """Renew the lease for work of at most `busy_ms`; raises FenceLost, and then nothing may be sent or read."""
    with durable():
        lock_run(claim.run_id, fence=claim.fence)
        hold(claim, busy_ms=busy_ms, done=done, total=total)


def finish(
    claim: Claim,
    *,
    refused: Mapping[int, Refused],
    now: datetime,
    taken: frozenset[int] = frozenset(),
    done: int = 0,
    described: Described | None = None,
) -> JobRecord:
    """End the job with the report of how the steps stand, and let calls pass again; raises FenceLost.

    `described` are the manifests that the job was given for tools whose own are not kept.
    """
    with durable():
        lock_run(claim.run_id, fence=claim.fence)
        finish_locked(claim, refused=refused, taken=taken, done=done, described=described, now=now)
    return job_record(RollbackJob.objects.get(pk=claim.job.id))


def finish_locked(
    claim: Claim,
    *,
    now: datetime,
    refused: Mapping[int, Refused] | None = None,
    taken: frozenset[int] = frozenset(),
    done: int = 0,
    described: Described | None = None,
) -> None:
    """End the job within the caller's block, which has locked the run under the fence."""
    options = claim.job.options
    hold(claim, busy_ms=0, done=done)
    steps = load_steps(claim.run_id, described=described)
    report = steps.report(now=now, refused=refused, selection=options.selection, taken=taken).to_json()
    _end(claim, state=JobState.DONE, report=report, error=None, now=now, closes=options.closes)


def fail(claim: Claim, *, error: str, now: datetime, described: Described | None = None) -> None:
    """End a job that broke down, and let calls pass again; a step whose undo was under way stays in doubt."""
    with durable():
        lock_run(claim.run_id, fence=claim.fence)
        report = load_steps(claim.run_id, described=described).report(now=now).to_json()
        _end(claim, state=JobState.FAILED, report=report, error=error, now=now, closes=False)


def _end(
    claim: Claim, *, state: JobState, report: Mapping[str, Any], error: str | None, now: datetime, closes: bool
) -> None:
    ended = RollbackJob.objects.filter(pk=claim.job.id, state=JobState.RUNNING, fence=claim.fence).update(
        state=state,
        report=report,
        error=None if error is None else make_visible(error, limit=ERROR),
        ended_at=now,
    )
    if ended != 1:
        raise FenceLost(claim.run_id, claim.fence)
    release_run(
        run_id=claim.run_id,
        fence=claim.fence,
        actor=claim.actor,
        now=now,
        closes=closes,
        report=journaled(claim.job.id, report),
    )


def journaled(job_id: str, report: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the journal keeps of a report: the line of each step follows from its events."""
    return {"job": job_id, **{name: value for name, value in report.items() if name != "steps"}}


def record_lost_fence(claim: Claim, *, now: datetime) -> None:
    """Note that another executor took the run over, if nothing has noted it yet."""
    with durable():
        RollbackJob.objects.filter(pk=claim.job.id, state=JobState.RUNNING, fence=claim.fence).update(
            state=JobState.FAILED, ended_at=now, error="another executor took the run over"
        )
