"""Part one: an agent tidies up a folder in enforce mode, and a worker takes all of it back."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from ledger.queries import check_run_chain, get_run, list_events, list_steps
from reversi_site.cli.timeline import timeline_lines
from reversi_site.demo.agent import TIDYING, Agent, start_agent
from reversi_site.demo.narrator import Narrator
from reversi_site.demo.stage import Stage
from reversi_site.demo.tree import Item, differences, photograph
from reversi_site.demo.worker_process import running_worker
from reversi_site.identity import local_principal
from reversi_site.kit.clock import SystemClock
from rollback.core.actions import Kind
from rollback.core.jobs import LIVE, JobRecord, JobState
from rollback.core.options import RollbackOptions
from rollback.core.plan import Plan
from rollback.core.report import Report
from rollback.core.text import plan_lines, report_lines
from rollback.operations.jobs import start_rollback
from rollback.queries import get_job, get_plan

WAIT_SECONDS = 45.0
POLL_SECONDS = 0.2


def play(stage: Stage, narrator: Narrator) -> str:
    """Play the part and return the run's id."""
    narrator.title("Part 1: everything can be undone")
    before = photograph(stage.sandbox)
    agent = _work(stage, narrator)
    _look_at_the_damage(stage, narrator, before)
    plan = _plan(agent.run_id, narrator)
    job = _roll_back_on_a_worker(stage, narrator, agent.run_id, plan)
    _check_report(narrator, job)
    _compare(stage, narrator, before)
    _check_journal(narrator, agent.run_id)
    return agent.run_id


def _work(stage: Stage, narrator: Narrator) -> Agent:
    narrator.say(
        "An agent is let loose on a folder of real files. Every call it makes passes a gate, which knows what the "
        "agent may do, and is written down in a journal before it happens, together with what it takes to undo it."
    )
    agent = start_agent(
        stage,
        actor="tidy-agent",
        mode="enforce",
        scope=("fs:read", "fs:write"),
        reason="tidy up the quarterly report",
        now=SystemClock().now(),
    )
    endings = [agent.call(tool, args) for tool, args in TIDYING]
    refused = agent.call("mail.send", {"to": "all@example.org", "subject": "All done"})
    record = get_run(agent.run_id)
    narrator.show(timeline_lines(record, list_steps(agent.run_id), list_events(agent.run_id)))
    narrator.say("Two calls came to nothing, as they should:")
    narrator.expect("a mail, which the agent may not send, was blocked", refused.startswith("blocked:"), refused)
    narrator.expect("nothing was mailed", stage.books.book("outbox") == {}, stage.books.book("outbox"))
    escape = next(end for (_, args), end in zip(TIDYING, endings, strict=True) if ".." in args.get("path", ""))
    narrator.expect("a path that leads out of the folder failed", escape.startswith("failed:"), escape)
    narrator.expect("nothing was written there", not (stage.folder / "outside.txt").exists())
    succeeded = endings.count("succeeded")
    narrator.expect("all other calls succeeded", succeeded == len(TIDYING) - 1, endings)
    return agent


def _look_at_the_damage(stage: Stage, narrator: Narrator, before: Mapping[str, Item]) -> None:
    changes = differences(before, photograph(stage.sandbox))
    narrator.say("What the agent left behind, compared with the folder as it was:")
    narrator.show(changes)
    narrator.expect("the folder is no longer what it was", len(changes) > len(TIDYING) / 2, len(changes))


def _plan(run_id: str, narrator: Narrator) -> Plan:
    plan = get_plan(run_id=run_id, now=SystemClock().now())
    narrator.say(
        "Before anything is undone there is a plan: the newest change first, what each undo will call, how it will "
        "be checked, and what it cannot take back (named here once each)."
    )
    narrator.show_briefly(plan_lines(plan))
    undos = [action for action in plan.actions if action.kind is Kind.COMPENSATE]
    narrator.expect("the plan says that everything can be undone", plan.fully_reversible)
    narrator.expect("every undo will be read back before it counts", all(action.verified for action in undos))
    narrator.expect("what stays behind is named", any(action.residue for action in undos))
    return plan


def _roll_back_on_a_worker(stage: Stage, narrator: Narrator, run_id: str, plan: Plan) -> JobRecord:
    narrator.say(
        "The rollback is queued, and a worker, which is a process of its own, carries it out. It executes the plan "
        "that was just shown, or nothing: the plan's digest goes along."
    )
    with running_worker(stage.folder / "worker.log") as worker:
        options = RollbackOptions(digest=plan.digest)
        job = start_rollback(run_id=run_id, actor=local_principal(), now=SystemClock().now(), options=options)
        job = _wait(job.id, worker)
        narrator.expect("the worker finished the job", job.state is JobState.DONE, job.error or job.state.value)
        narrator.expect("it was another process that did it", not job.worker.endswith(f":{os.getpid()}"), job.worker)
    narrator.expect(
        "the worker stopped when it was told to", worker.returncode == 0, _tail(stage.folder / "worker.log")
    )
    return job


def _wait(job_id: str, worker: subprocess.Popen[bytes]) -> JobRecord:
    ends_at = time.monotonic() + WAIT_SECONDS
    job = get_job(job_id)
    while job.state in LIVE and time.monotonic() < ends_at and worker.poll() is None:
        time.sleep(POLL_SECONDS)
        job = get_job(job_id)
    return job


def _tail(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-500:]


def _check_report(narrator: Narrator, job: JobRecord) -> None:
    if job.report is None:
        narrator.expect("there is a report", False, job.error)
        return
    report = Report.from_json(job.report)
    narrator.say("The report is computed from how every step stands afterwards, not from what the worker believes:")
    narrator.show_briefly(report_lines(report))
    changed = sum(1 for tool, _ in TIDYING if tool not in ("fs.list_dir", "fs.read_file")) - 1
    narrator.expect("the rollback is complete", report.is_complete)
    narrator.expect(f"all {changed} changes were undone", len(report.to_json()["compensated"]) == changed)
    narrator.expect("every one of them was read back", not report.unverified and not report.unchecked)


def _compare(stage: Stage, narrator: Narrator, before: Mapping[str, Item]) -> None:
    after = photograph(stage.sandbox)
    found = differences(before, after)
    total = sum(len(item.content) for item in after.values())
    narrator.say("And now the only thing that counts: is the folder what it was?")
    narrator.expect(
        f"all {len(after)} names, their modes and their {total} bytes are exactly as before", not found, found
    )


def _check_journal(narrator: Narrator, run_id: str) -> None:
    report = check_run_chain(run_id)
    narrator.expect(
        f"the journal's {report.count} entries form an unbroken chain", not report.problems, report.problems
    )
