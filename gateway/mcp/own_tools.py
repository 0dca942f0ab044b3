"""The gateway's own tools: the run, its plan, and for operators the rollback and the halts.

They are no calls of an agent: nothing of them is journaled but what they do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import anyio
from mcp.shared.dispatcher import ProgressFnT

from approvals.core.documents import halt_document
from approvals.core.halts import HaltScope
from approvals.core.people import Act, require
from approvals.operations.halts import add_halt, lift_halt
from approvals.queries import get_run_for
from gateway.core import answers, own_tools
from gateway.core.answers import Result
from gateway.core.schemas import Schemas
from gateway.journal import Journal
from gateway.mcp.client_runs import ClientRuns, with_reason
from gateway.mcp.failures import failed
from gateway.mcp.rollbacks import Rollback, Rollbacks
from gateway.mcp.visits import Visit
from ledger.core.errors import BadRunId
from ledger.core.values import RUN_ID, RunRecord
from reversi_sdk.errors import InvalidInput
from reversi_site.kit.clock import Clock
from rollback.core.backoff import Retrying
from rollback.core.errors import JobNotFound
from rollback.core.options import RollbackOptions
from rollback.core.selection import Selection
from rollback.core.text import plan_lines, report_lines
from rollback.queries import get_last_job

ATTEMPTS, BASE_MS = 3, 250

Arguments = Mapping[str, Any]


class SelectionTwice(InvalidInput):
    """Two ways of choosing steps at once."""

    code = "selection_invalid"

    def __init__(self) -> None:
        super().__init__("steps and to_step cannot be combined")


class OwnTools:
    """Answers the tools whose names begin with `reversi.`."""

    def __init__(
        self, journal: Journal, runs: ClientRuns, rollbacks: Rollbacks, *, clock: Clock, answers_after_s: float
    ) -> None:
        self._journal, self._runs, self._rollbacks, self._clock = journal, runs, rollbacks, clock
        self._answers_after_s = answers_after_s
        self._schemas = Schemas()
        self._doings: Mapping[str, Callable[[Visit, Arguments], Awaitable[Result]]] = {
            own_tools.RUN: self._run,
            own_tools.PLAN: self._plan,
            own_tools.EXECUTE: self._execute,
            own_tools.HALT: self._halt,
            own_tools.RESUME: self._resume,
        }

    def listed(self, visit: Visit) -> Sequence[own_tools.Tool]:
        """Return the tools that the visit may use."""
        mine = own_tools.AGENT_TOOLS if visit.may_call else own_tools.AGENT_TOOLS[1:]
        return (*mine, *own_tools.OPERATOR_TOOLS) if visit.is_operator else mine

    async def call(self, visit: Visit, tool: str, arguments: Arguments) -> Result:
        """Do what the tool says and answer in words, whatever comes of it; raises nothing but a cancellation."""
        names = [each["name"] for each in self.listed(visit)]
        if tool not in names:
            return answers.unknown_tool(tool, names)
        problems = self._schemas.problems(tool, own_tools.SCHEMAS[tool], arguments)
        if problems:
            return answers.invalid_arguments(tool, problems)
        try:
            return await self._doings[tool](visit, arguments)
        except Exception as error:  # noqa: BLE001  # a model cannot read an error of the protocol
            return failed(error)

    async def _run(self, visit: Visit, arguments: Arguments) -> Result:
        visit = with_reason(visit, arguments.get("reason", ""))
        run_id = arguments.get("id")
        if arguments.get("close", False):
            run, is_opened = await self._runs.close(visit, run_id=_run_id(run_id)), False
        else:
            run, is_opened = await self._runs.take(visit, run_id=_run_id(run_id), is_new=arguments.get("new", False))
        body = {
            "run": run.id,
            "state": run.state.value,
            "mode": run.mode.value,
            "steps": run.next_step,
            "opened": is_opened,
        }
        return answers.document(_run_text(run, is_opened), body)

    async def _plan(self, visit: Visit, arguments: Arguments) -> Result:
        # Behind the agents' door everybody is an agent, whatever else the key could do.
        others, selection = Act.READ_ANY_RUN if visit.is_operator else None, _selection(arguments)
        run = await self._chosen_run(visit, arguments, own=Act.READ_OWN_RUN, others=others)
        plan = await self._rollbacks.plan(run_id=run.id, selection=selection)
        return answers.said("\n".join([f"plan for {run.id}", *plan_lines(plan)]), plan.to_json())

    async def _execute(self, visit: Visit, arguments: Arguments) -> Result:
        selection = _selection(arguments)
        run = await self._chosen_run(visit, arguments, own=Act.ROLL_BACK, others=Act.ROLL_BACK)
        if not arguments.get("confirm", False):
            plan = await self._rollbacks.plan(run_id=run.id, selection=selection)
            lines = [f"plan for {run.id}; nothing was done", *plan_lines(plan)]
            lines.append(f'To do it, repeat this with "confirm": true and "digest": "{plan.digest}".')
            return answers.said("\n".join(lines), {**plan.to_json(), "confirm": False})
        options = _options(arguments, selection)
        rollback = await self._rollbacks.start_or_join(run.id, options=options, actor=visit.caller.username)
        await self._follow(rollback, visit.report)
        return await self._standing(rollback)

    async def _halt(self, visit: Visit, arguments: Arguments) -> Result:
        require(visit.caller, Act.ADD_HALT)
        scope = HaltScope(**{key: value for key, value in arguments.items() if key != "reason"})
        halt, in_flight = await self._journal.run(
            add_halt,
            reason=arguments["reason"],
            scope=scope,
            actor=visit.caller.username,
            now=self._clock.now(),
        )
        body = {**halt_document(halt), "in_flight": in_flight}
        return answers.document(f"New calls are stopped; {in_flight} matching ones are in flight.", body)

    async def _resume(self, visit: Visit, arguments: Arguments) -> Result:
        require(visit.caller, Act.LIFT_HALT)
        lifted = await self._journal.run(
            lift_halt, id=arguments.get("id"), actor=visit.caller.username, now=self._clock.now()
        )
        return answers.document(f"Halts lifted: {lifted}.", {"lifted": lifted})

    async def _chosen_run(self, visit: Visit, arguments: Arguments, *, own: Act, others: Act | None) -> RunRecord:
        run_id = _run_id(arguments.get("run"))
        if run_id is None:
            # Never a run that is opened for the purpose: undoing nothing would read as if all were undone.
            run_id = await self._runs.present(visit)
        return await self._journal.run(get_run_for, caller=visit.caller, run_id=run_id, own=own, others=others)

    async def _follow(self, rollback: Rollback, report: ProgressFnT | None) -> None:
        """Wait until the rollback has ended, or it is time to answer."""
        with anyio.move_on_after(self._answers_after_s):
            while not rollback.standing.is_over:
                standing = await rollback.changed()
                if report is not None:
                    await report(standing.done, standing.total or None, standing.words)

    async def _standing(self, rollback: Rollback) -> Result:
        """Return the answer about a rollback; its end is told once."""
        standing = rollback.standing
        if standing.is_over:
            self._rollbacks.reported(rollback)
        if standing.error is not None:
            return failed(standing.error)
        body = {**(await self._job(rollback)), "progress": {"done": standing.done, "total": standing.total}}
        if standing.report is None:
            text = f"The rollback goes on, {standing.words}. Repeat this call to wait for its end."
            return answers.document(text, body)
        text = "\n".join(report_lines(standing.report))
        return answers.said(text, {**body, "report": standing.report.to_json()})

    async def _job(self, rollback: Rollback) -> dict[str, Any]:
        state = "done" if rollback.standing.is_over else "running"
        try:
            job = (await self._journal.run(get_last_job, rollback.run_id)).id
        except JobNotFound:
            # Its thread has not come so far yet.
            job = None
        return {"run_id": rollback.run_id, "job": job, "state": state}


def _run_id(given: str | None) -> str | None:
    if given is not None and not RUN_ID.fullmatch(given):
        raise BadRunId(given)
    return given


def _selection(arguments: Arguments) -> Selection | None:
    steps, to_step = arguments.get("steps"), arguments.get("to_step")
    if steps is None and to_step is None:
        return None
    if steps is not None and to_step is not None:
        raise SelectionTwice
    return Selection(steps=None if steps is None else tuple(sorted(set(steps))), to_step=to_step)


def _options(arguments: Arguments, selection: Selection | None) -> RollbackOptions:
    return RollbackOptions(
        retrying=Retrying(attempts=arguments.get("retries", ATTEMPTS), base_ms=BASE_MS),
        selection=selection,
        approves_compensations=arguments.get("approve_compensations", False),
        is_overwrite_allowed=arguments.get("overwrite", False),
        closes=arguments.get("close", False),
        digest=arguments.get("digest"),
    )


def _run_text(run: RunRecord, is_opened: bool) -> str:
    word = "opened" if is_opened else run.state.value
    return f"Run {run.id} is {word}, with {run.next_step} steps, in mode {run.mode.value}."
