"""What rollbacks can be asked: plans, reports and jobs as core values, in a fixed number of queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.conf import settings

from approvals.core.redaction import redaction_paths
from ledger.core.errors import RunNotFound
from ledger.core.values import StepRecord
from ledger.queries import find_contradictions, get_keyed_digest, get_run, get_step, list_steps
from manifests_registry.core.errors import DocumentAltered, DocumentNotFound
from manifests_registry.queries import get_document, get_documents
from reversi_sdk.canonical import sha256_hex
from reversi_sdk.model import Manifest
from reversi_site.kit.transactions import snapshot
from rollback.core.errors import JobNotFound
from rollback.core.jobs import LIVE, JobKind, JobRecord, JobState
from rollback.core.keys import KeyedDigest
from rollback.core.options import RollbackOptions
from rollback.core.plan import CanRun, Plan, build_plan
from rollback.core.report import Refused, Report, build_report
from rollback.core.selection import Selection
from rollback.core.steps import AttemptFact, AttemptOutcome, PlanStep, Role
from rollback.models import Attempt, RollbackJob


@dataclass(frozen=True, slots=True)
class RunSteps:
    """A run's steps, oldest first, ready to be planned; `rowless` are steps that only the journal tells of."""

    run_id: str
    steps: Sequence[PlanStep]
    keyed_digest: KeyedDigest
    rowless: tuple[int, ...] = ()

    def plan(self, *, now: datetime, selection: Selection | None = None, can_run: CanRun | None = None) -> Plan:
        """Plan the undoing of the steps."""
        return build_plan(
            self.run_id,
            self.steps,
            keyed_digest=self.keyed_digest,
            now=now,
            selection=selection,
            can_run=can_run,
            rowless=self.rowless,
        )

    def report(
        self,
        *,
        now: datetime,
        refused: Mapping[int, Refused] | None = None,
        selection: Selection | None = None,
        taken: frozenset[int] = frozenset(),
    ) -> Report:
        """Report how the steps stand."""
        return build_report(
            self.run_id,
            self.steps,
            keyed_digest=self.keyed_digest,
            now=now,
            refused=refused or {},
            selection=selection,
            taken=taken,
            rowless=self.rowless,
        )


def get_plan(
    *,
    run_id: str,
    now: datetime,
    selection: Selection | None = None,
    can_run: CanRun | None = None,
    described: Mapping[str, Manifest] | None = None,
) -> Plan:
    """Plan the undoing of a run from one snapshot; raises RunNotFound and SelectionInvalid."""
    with snapshot():
        steps = load_steps(run_id, described=described)
    return steps.plan(now=now, selection=selection, can_run=can_run)


def get_report(*, run_id: str, now: datetime, selection: Selection | None = None) -> Report:
    """Report how a run's steps stand now; raises RunNotFound."""
    with snapshot():
        steps = load_steps(run_id)
    return steps.report(now=now, selection=selection)


def load_steps(run_id: str, *, described: Mapping[str, Manifest] | None = None) -> RunSteps:
    """Read everything that planning needs; the caller owns the transaction that makes it one moment."""
    get_run(run_id)
    records = list_steps(run_id)
    attempts: dict[int, list[AttemptFact]] = defaultdict(list)
    for row in Attempt.objects.filter(run_id=run_id).order_by("step", "number"):
        attempts[row.step].append(attempt_fact(row))
    contradictions = find_contradictions(run_id)
    steps = [
        replace(step, contradiction=contradictions.get(step.number))
        for step in _plan_steps(records, attempts, described or {})
    ]
    rowless = tuple(sorted(contradictions.keys() - {step.number for step in steps}))
    return RunSteps(run_id, steps, keyed_digest_of(run_id), rowless)


def load_step(run_id: str, number: int, *, described: Mapping[str, Manifest] | None = None) -> PlanStep:
    """Read one step as it stands now."""
    rows = Attempt.objects.filter(run_id=run_id, step=number).order_by("number")
    attempts = {number: [attempt_fact(row) for row in rows]}
    return _plan_steps([get_step(run_id, number)], attempts, described or {})[0]


def _plan_steps(
    records: Sequence[StepRecord], attempts: Mapping[int, Sequence[AttemptFact]], described: Mapping[str, Manifest]
) -> list[PlanStep]:
    documents = _documents(checksum for record in records for checksum in _checksums(record))
    configured = settings.CONFIGURATION.redaction
    redacted = {None: redaction_paths(None, configured)} | {
        checksum: redaction_paths(manifest, configured) for checksum, manifest in documents.items()
    }
    return [
        PlanStep(
            record=record,
            manifest=documents.get(record.manifest_checksum or ""),
            # A snapshot is what the step ran under; only a tool that it does not know may be described from outside.
            follow_ups={
                **described,
                **{tool: documents[found] for tool, found in record.snapshot.items() if found in documents},
            },
            attempts=tuple(attempts.get(record.number, ())),
            redacted=redacted.get(record.manifest_checksum, redacted[None]),
        )
        for record in records
    ]


def _checksums(record: StepRecord) -> Iterable[str]:
    yield from record.snapshot.values()
    if record.manifest_checksum is not None:
        yield record.manifest_checksum


def _documents(checksums: Iterable[str]) -> Mapping[str, Manifest]:
    wanted = frozenset(checksums)
    try:
        return get_documents(wanted)
    except DocumentAltered:
        # One altered document must not hide the plan of every other step.
        return {checksum: found for checksum in wanted if (found := _whole_document(checksum)) is not None}


def _whole_document(checksum: str) -> Manifest | None:
    try:
        return get_document(checksum)
    except (DocumentAltered, DocumentNotFound):
        return None


def keyed_digest_of(run_id: str) -> Callable[[bytes], str]:
    """Return the run's keyed digest; of a purged run, one that recognises nothing of it."""
    try:
        return get_keyed_digest(run_id)
    except RunNotFound:
        # The salt goes with the last handle: nothing is left whose arguments could be compared.
        return sha256_hex


def attempt_fact(row: Attempt) -> AttemptFact:
    """Return the send as a value."""
    return AttemptFact(
        pair=row.pair,
        generation=row.generation,
        key=row.key,
        tool=row.tool,
        role=Role(row.role),
        is_keyed=row.is_keyed,
        outcome=None if row.outcome is None else AttemptOutcome(row.outcome),
        is_settled=row.is_settled,
    )


def get_job(job_id: str) -> JobRecord:
    """Return a job; raises JobNotFound."""
    row = RollbackJob.objects.filter(pk=job_id).first()
    if row is None:
        raise JobNotFound(f"no job {job_id}")
    return job_record(row)


def get_last_job(run_id: str) -> JobRecord:
    """Return the run's latest job; raises RunNotFound, and JobNotFound when there never was one."""
    get_run(run_id)
    row = RollbackJob.objects.filter(run_id=run_id).order_by("-created_at", "-id").first()
    if row is None:
        raise JobNotFound(f"run {run_id} was never rolled back")
    return job_record(row)


def list_jobs(run_id: str, *, limit: int = 50) -> Sequence[JobRecord]:
    """Return the run's jobs, latest first."""
    rows = RollbackJob.objects.filter(run_id=run_id).order_by("-created_at", "-id")
    return [job_record(row) for row in rows[:limit]]


def list_live_jobs(*, limit: int = 20) -> Sequence[JobRecord]:
    """Return the jobs that wait or work, whatever their run, oldest first."""
    rows = RollbackJob.objects.filter(state__in=LIVE).order_by("created_at", "id")
    return [job_record(row) for row in rows[:limit]]


def list_jobs_waiting_for(upstreams: Collection[str]) -> Sequence[JobRecord]:
    """Return the queued jobs that only the holder of one of these upstreams can do, oldest first."""
    rows = RollbackJob.objects.filter(state=JobState.QUEUED, waiting_for__in=list(upstreams))
    return [job_record(row) for row in rows.order_by("created_at", "id")]


def find_live_job(run_id: str) -> JobRecord | None:
    """Return the job that waits or works on the run, if there is one."""
    row = RollbackJob.objects.filter(run_id=run_id, state__in=LIVE).first()
    return None if row is None else job_record(row)


def job_record(row: RollbackJob) -> JobRecord:
    """Return the job as a value."""
    return JobRecord(
        id=row.id,
        run_id=row.run_id,
        kind=JobKind(row.kind),
        state=JobState(row.state),
        options=RollbackOptions.from_json(row.options),
        is_foreground=row.is_foreground,
        requested_by=row.requested_by,
        worker=row.worker,
        fence=row.fence,
        done=row.done,
        total=row.total,
        report=row.report,
        error=row.error,
        created_at=row.created_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        waiting_for=row.waiting_for,
    )
