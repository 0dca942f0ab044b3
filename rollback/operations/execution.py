"""Do a job: roll a run back, newest step first, or run its open read-backs (D23).

What is executed is the plan that was shown. Before each undo it is asked again whether a later step still stands on
it, now by what really happened, and the report is computed from the steps as they stand at the end.
"""

from __future__ import annotations

import logging
import os
import random
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ledger.core.errors import FenceLost
from ledger.core.statuses import StepState
from ledger.queries import get_step, list_upstreams
from reversi_sdk.errors import ReversiError
from reversi_sdk.model import Manifest
from reversi_site.kit.clock import Clock, SystemClock
from reversi_site.kit.transactions import snapshot
from rollback.core.actions import Action, Kind
from rollback.core.assessment import assess
from rollback.core.dependencies import Blockers
from rollback.core.errors import PlanStale
from rollback.core.jobs import JobKind, JobRecord, JobState
from rollback.core.options import RollbackOptions
from rollback.core.ports import Tools
from rollback.core.progress import OnProgress, stay_silent
from rollback.core.report import Refusal, Refused, Report
from rollback.core.selection import Selection
from rollback.core.steps import PlanStep
from rollback.operations.jobs import (
    Claim,
    claim_job,
    claim_new,
    fail,
    finish,
    note_waiting,
    record_lost_fence,
    renew,
    require_digest,
)
from rollback.operations.undoing import Undoing, leave_in_doubt, refuse
from rollback.operations.verification import list_open, settle_read_backs
from rollback.operations.work import Chance, Sleep, Work
from rollback.queries import RunSteps, get_job, keyed_digest_of, load_step, load_steps

Refusals = dict[int, Refused]
Doing = Callable[[Work], "Done"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Done:
    """What the report of a job needs besides the steps: what was refused, and what the job was planned for."""

    refused: Mapping[int, Refused] = field(default_factory=dict)
    taken: frozenset[int] = frozenset()


def worker_name() -> str:
    """Name this process among the workers."""
    return f"{socket.gethostname()}:{os.getpid()}"


def execute_job(
    *,
    job_id: str,
    tools: Tools,
    worker: str = "",
    clock: Clock | None = None,
    sleep: Sleep = time.sleep,
    chance: Chance = random.random,
    on_progress: OnProgress = stay_silent,
) -> JobRecord:
    """Claim a job and do it; one that has ended, or that another executor works on, is left alone.

    A job that needs the live session of an upstream is left to the gateway that holds it. One whose run was taken over
    meanwhile ends without a word but its own record. Anything unexpected ends the job with its error and is raised on.
    """
    time_source = clock or SystemClock()
    upstream = _waits_for(get_job(job_id), tools, time_source)
    if upstream is not None:
        note_waiting(job_id=job_id, upstream=upstream)
        return get_job(job_id)
    claim = claim_job(job_id=job_id, worker=worker or worker_name(), now=time_source.now())
    if claim is None:
        return get_job(job_id)
    work = _work(claim, tools, clock=time_source, sleep=sleep, chance=chance, on_progress=on_progress)
    try:
        return perform(work, _DOINGS[claim.job.kind])
    except FenceLost:
        return get_job(job_id)


def _waits_for(job: JobRecord, tools: Tools, clock: Clock) -> str | None:
    """Return the upstream whose session only another process holds, where the job's plan needs it."""
    if job.state is not JobState.QUEUED or job.kind is not JobKind.ROLLBACK:
        return None
    try:
        return _first_waited_for(job.run_id, job.options.selection, tools, now=clock.now())
    except Exception:  # whatever is wrong is met again, and put on record, when the job is done
        logger.warning("nobody can say whether job %s waits for a gateway", job.id, exc_info=True)
        return None


def _first_waited_for(
    run_id: str,
    selection: Selection | None,
    tools: Tools,
    *,
    now: datetime,
    described: Mapping[str, Manifest] | None = None,
) -> str | None:
    if all(tools.at(upstream).waits_for is None for upstream in list_upstreams(run_id)):
        # As nearly always: a long run need not be planned once more to know it.
        return None
    with snapshot():
        loaded = load_steps(run_id, described=described)
    upstreams = {step.number: step.record.upstream for step in loaded.steps}
    plan = loaded.plan(now=now, selection=selection)
    undos = [action for action in plan.actions if action.kind is Kind.COMPENSATE]
    for action in undos:
        there, tool = tools.at(upstreams[action.step]), action.compensation_tool
        if there.waits_for is not None and tool is not None and not there.executor.can_run(tool):
            return there.waits_for
    return None


def run_foreground(
    *,
    run_id: str,
    tools: Tools,
    actor: str,
    options: RollbackOptions | None = None,
    clock: Clock | None = None,
    sleep: Sleep = time.sleep,
    chance: Chance = random.random,
    on_progress: OnProgress = stay_silent,
    described: Mapping[str, Manifest] | None = None,
) -> Report:
    """Roll a run back in this process and return the report.

    Raises RollbackRunning while another executor works on the run (a job that only waits gives way to one that does as
    much), PlanStale, SelectionInvalid, and FenceLost when the run was taken over meanwhile.
    """
    time_source, wanted = clock or SystemClock(), options or RollbackOptions()
    asked_at = time_source.now()
    require_digest(run_id, wanted, asked_at)
    waits_for = _first_waited_for(run_id, wanted.selection, tools, now=asked_at, described=described)
    claim = claim_new(
        kind=JobKind.ROLLBACK,
        run_id=run_id,
        options=wanted,
        actor=actor,
        worker=worker_name(),
        now=time_source.now(),
        reaches_all=waits_for is None,
    )
    work = _work(claim, tools, clock=time_source, sleep=sleep, chance=chance, on_progress=on_progress)
    work.described = described or {}
    return _report_of(perform(work, _roll_back))


def verify_run(
    *,
    run_id: str,
    tools: Tools,
    actor: str,
    clock: Clock | None = None,
    sleep: Sleep = time.sleep,
    on_progress: OnProgress = stay_silent,
) -> Report:
    """Run the open read-backs of a run in this process and return how its steps stand; raises RollbackRunning."""
    time_source = clock or SystemClock()
    claim = claim_new(
        kind=JobKind.VERIFY,
        run_id=run_id,
        options=RollbackOptions(),
        actor=actor,
        worker=worker_name(),
        now=time_source.now(),
    )
    work = _work(claim, tools, clock=time_source, sleep=sleep, chance=random.random, on_progress=on_progress)
    return _report_of(perform(work, _verify))


def _work(claim: Claim, tools: Tools, *, clock: Clock, sleep: Sleep, chance: Chance, on_progress: OnProgress) -> Work:
    return Work(
        claim=claim,
        tools=tools,
        clock=clock,
        sleep=sleep,
        chance=chance,
        keyed_digest=keyed_digest_of(claim.run_id),
        on_progress=on_progress,
    )


def _report_of(job: JobRecord) -> Report:
    report: Mapping[str, Any] = job.report or {}
    return Report.from_json(report)


def perform(work: Work, doing: Doing) -> JobRecord:
    """Do a claimed job to its end and give the run back, however it ends."""
    try:
        done = doing(work)
        return finish(
            work.claim,
            refused=done.refused,
            taken=done.taken,
            done=work.done,
            described=work.described,
            now=work.clock.now(),
        )
    except FenceLost:
        record_lost_fence(work.claim, now=work.clock.now())
        raise
    except (Exception, KeyboardInterrupt) as error:
        _break_down(work, error)
        raise


def _break_down(work: Work, error: BaseException) -> None:
    """Give the run back with the error on record; where even that fails, recovery does it when the lease runs out."""
    words = str(error) if isinstance(error, ReversiError) else f"{type(error).__name__}: {error}"
    try:
        fail(work.claim, error=words, described=work.described, now=work.clock.now())
    except FenceLost:
        record_lost_fence(work.claim, now=work.clock.now())


def _load(work: Work) -> RunSteps:
    with snapshot():
        return load_steps(work.run_id, described=work.described)


def _verify(work: Work) -> Done:
    steps = _load(work).steps
    open_ones = list_open(work, steps)
    work.total = len(open_ones)
    settle_read_backs(work, steps, open_ones, lambda step, is_undone: _tell(work, step, is_undone))
    return Done()


def _tell(work: Work, step: PlanStep, is_undone: bool) -> None:
    work.advance(step.number, step.record.tool, "read back" if is_undone else "not undone after all")


def _roll_back(work: Work) -> Done:
    options, loaded = work.options, _load(work)
    plan = loaded.plan(now=work.clock.now(), selection=options.selection)
    if options.digest is not None and options.digest != plan.digest:
        raise PlanStale(work.run_id, options.digest, plan.digest)
    actions = {action.step: action for action in plan.actions}
    open_ones = list_open(work, [step for step in loaded.steps if step.number in actions])
    work.total = sum(action.kind is Kind.COMPENSATE for action in plan.actions) + len(open_ones)
    renew(work.claim, busy_ms=0, total=work.total)
    walk = _Walk(work, actions)
    settle_read_backs(work, loaded.steps, open_ones, walk.take_in_read_back)
    for step in reversed(loaded.steps):
        walk.visit(step)
    return Done(walk.refused, frozenset(actions))


class _Walk:
    """The way through a run, newest step first, with what turned out to stand."""

    def __init__(self, work: Work, actions: Mapping[int, Action]) -> None:
        self.work, self.actions = work, actions
        self.blockers = Blockers()
        self.refused: Refusals = {}
        self.stand_after_all: set[int] = set()

    def take_in_read_back(self, step: PlanStep, is_undone: bool) -> None:
        """Note what an open read-back showed."""
        if not is_undone:
            self.stand_after_all.add(step.number)
        _tell(self.work, step, is_undone)

    def visit(self, step: PlanStep) -> None:
        """Undo the step if that is planned and nothing stands on it; note whether it stands now."""
        if self._stands_after(step):
            self.blockers.stands(step)
        else:
            self.blockers.passes(step)

    def _stands_after(self, step: PlanStep) -> bool:
        action = self.actions.get(step.number)
        if action is None:
            return self._needs_undo(step)
        if action.kind is Kind.SKIP:
            return step.number in self.stand_after_all
        if action.kind is Kind.UNRESOLVED and step.is_undo_begun:
            leave_in_doubt(self.work, step)
        if action.kind is not Kind.COMPENSATE:
            return True
        word = "deferred" if self.blockers.of(step) else self._undo(step.number, action)
        self.work.advance(step.number, step.record.tool, word)
        return word != StepState.COMPENSATED

    def _needs_undo(self, step: PlanStep) -> bool:
        return assess(step, keyed_digest=self.work.keyed_digest, now=self.work.clock.now()).needs_undo

    def _undo(self, number: int, action: Action) -> str:
        """Undo a step as it stands now, unless that would be another undo than the one planned."""
        step = load_step(self.work.run_id, number, described=self.work.described)
        found = assess(step, keyed_digest=self.work.keyed_digest, now=self.work.clock.now())
        if not found.needs_undo:
            return StepState.COMPENSATED.value
        if found.chosen is None or found.chosen.pair != action.pair:
            why = f"the undo that was planned no longer serves{f': {found.reason}' if found.reason else ''}"
            refused: Refused | None = refuse(self.work, step, Refused(Refusal.PLANNED_OTHERWISE, why))
        else:
            refused = Undoing.of(self.work, step, found.chosen).run()
        if refused is not None:
            self.refused[number] = refused
            return refused.error
        return get_step(self.work.run_id, number).state.value


_DOINGS: Mapping[JobKind, Doing] = {JobKind.ROLLBACK: _roll_back, JobKind.VERIFY: _verify}
