"""The work on a run while it goes on, and the report when it has ended."""

from __future__ import annotations

from django.http import HttpResponse, JsonResponse

from approvals.core.people import Act
from ledger.core.values import RunRecord
from reversi_site.console.frame import worker_state
from reversi_site.console.pages.runs import READERS, readable_run, run_context
from reversi_site.console.refusals import refusal_of
from reversi_site.console.reporting import show_report
from reversi_site.console.visit import Visit, page
from reversi_site.schedules import heartbeat_age_ms
from rollback.core.errors import JobNotFound
from rollback.core.jobs import LIVE, JobKind, JobRecord, JobState
from rollback.core.report import Report
from rollback.operations.jobs import start_verification
from rollback.queries import get_job, get_report, list_jobs

KINDS = {JobKind.ROLLBACK: "Rollback", JobKind.VERIFY: "Read-backs", JobKind.RESOLVE: "Settling by hand"}


@page(*READERS)
def run_report(visit: Visit, run_id: str) -> HttpResponse:
    """Show how every step stands now, and the jobs that worked on the run."""
    run = readable_run(visit, run_id)
    return visit.show(
        "run_report",
        title="Report",
        **run_context(visit, run, "report"),
        shown=show_report(get_report(run_id=run.id, now=visit.now), is_of_a_job=False),
        jobs=[(job, KINDS[job.kind]) for job in list_jobs(run.id)],
    )


@page(*READERS)
def job(visit: Visit, run_id: str, job_id: str) -> HttpResponse:
    """Show a job's progress while it lives, and its report afterwards."""
    run, found = _job_of(visit, run_id, job_id)
    report = found.report
    return visit.show(
        "job",
        title=KINDS[found.kind],
        **run_context(visit, run, "report"),
        job=found,
        is_live=found.state in LIVE,
        words=_words(found),
        shown=None if report is None else show_report(Report.from_json(report), is_of_a_job=True),
    )


@page(*READERS)
def job_progress(visit: Visit, run_id: str, job_id: str) -> HttpResponse:
    """Answer how far a job is, for the page that watches it."""
    _, found = _job_of(visit, run_id, job_id)
    return JsonResponse(
        {
            "state": found.state.value,
            "words": _words(found),
            "done": found.done,
            "total": found.total,
            "ended": found.state not in LIVE,
            "worker_alive": worker_state(heartbeat_age_ms()).is_alive,
        }
    )


def _words(job: JobRecord) -> str:
    """Say what the job does now, or what it waits for."""
    if job.state is not JobState.QUEUED:
        return "Working"
    if job.waiting_for is None:
        return "Waiting for a worker"
    return (
        f"Waiting for executor: the gateway that holds the session of {job.waiting_for}. If that has ended, "
        f"`{_command(job)}` ends the wait after a minute and reports what stays"
    )


def _command(job: JobRecord) -> str:
    """Return the command that may take the job over: one that undoes as much, and no more (D23)."""
    options = job.options
    if job.kind is JobKind.VERIFY:
        return f"reversi verify {job.run_id}"
    words = ["reversi rollback", job.run_id]
    if options.selection is not None and options.selection.steps is not None:
        words.append(f"--steps {','.join(map(str, options.selection.steps))}")
    elif options.selection is not None:
        words.append(f"--to-step {options.selection.to_step}")
    if options.retrying.attempts > 1:
        words.append(f"--retries {options.retrying.attempts}")
    flags = {
        "--approve-compensations": options.approves_compensations,
        "--overwrite": options.is_overwrite_allowed,
        "--close": options.closes,
    }
    return " ".join([*words, *(flag for flag, is_given in flags.items() if is_given)])


def _job_of(visit: Visit, run_id: str, job_id: str) -> tuple[RunRecord, JobRecord]:
    run, found = readable_run(visit, run_id), get_job(job_id)
    # A job's id under another run's address would show what the caller may not read.
    if found.run_id != run.id:
        raise JobNotFound(f"no job {job_id}")
    return run, found


@page(Act.VERIFY)
def verify(visit: Visit, run_id: str) -> HttpResponse:
    """Queue the read-backs that are open."""
    run = readable_run(visit, run_id)
    jobs: list[str] = []
    refused = refusal_of(
        lambda: jobs.append(start_verification(run_id=run.id, actor=visit.caller.username, now=visit.now).id)
    )
    if refused is not None:
        return visit.refused(refused, "report", run_id=run.id)
    return visit.go("job", run_id=run.id, job_id=jobs[0])
