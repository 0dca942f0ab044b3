"""What comes after an earlier step's undo is neither judged by a state that is gone, nor sent (D22, D23)."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.core.statuses import ReadBack, StepState
from ledger.queries import get_step, list_events
from reversi_site.kit.clock import SystemClock
from rollback.core.options import RollbackOptions
from rollback.core.ports import Tools
from rollback.core.report import Report
from rollback.operations.execution import run_foreground, verify_run
from rollback.queries import get_plan
from tests.databases import Database
from tests.system.agents import FileAgent


@pytest.fixture
def agent(db: Database, tmp_path: Path) -> FileAgent:
    """An agent that wrote a new file twice."""
    agent = FileAgent(tmp_path / "root")
    agent.call("fs.write_file", path="a.txt", content="one")
    agent.call("fs.write_file", path="a.txt", content="two")
    return agent


def roll_back(agent: FileAgent, *, is_readable: bool, is_overwrite_allowed: bool = False) -> Report:
    tools = agent.tools() if is_readable else Tools(agent.tools().executor)
    options = RollbackOptions(is_overwrite_allowed=is_overwrite_allowed)
    return run_foreground(run_id=agent.run.id, tools=tools, actor="op", options=options, sleep=lambda _: None)


def test_a_read_back_made_late_vouches_for_what_lies_on_it(agent: FileAgent) -> None:
    report = roll_back(agent, is_readable=False)
    assert (report.unverified, report.is_complete) == ((0, 1), False)

    report = verify_run(run_id=agent.run.id, tools=agent.tools(), actor="op", sleep=lambda _: None)

    assert report.is_complete
    assert [get_step(agent.run.id, number).read_back for number in (0, 1)] == [ReadBack.VERIFIED, ReadBack.VERIFIED]
    verified = [event.data or {} for event in list_events(agent.run.id) if event.kind == "verified"]
    assert verified[1]["vouched"] == "by the read-back of an earlier step"


def test_a_read_back_made_late_does_not_vouch_for_an_undo_that_lied(agent: FileAgent) -> None:
    lying = Tools(agent.tools({0: ["lies"]}).executor)
    run_foreground(run_id=agent.run.id, tools=lying, actor="op", sleep=lambda _: None)

    report = verify_run(run_id=agent.run.id, tools=agent.tools(), actor="op", sleep=lambda _: None)

    assert not report.is_complete
    assert get_step(agent.run.id, 0).state is StepState.COMPENSATION_FAILED
    assert (agent.root / "a.txt").read_text() == "one"


def test_an_undo_is_not_sent_over_an_earlier_ones(agent: FileAgent) -> None:
    """As it stood when late read-backs were still judged: step 1 called failed, step 0 undone beneath it."""
    lying = Tools(agent.tools({1: ["lies"]}).executor)
    run_foreground(run_id=agent.run.id, tools=lying, actor="op", sleep=lambda _: None)
    (agent.root / "a.txt").unlink()
    verify_run(run_id=agent.run.id, tools=agent.tools(), actor="op", sleep=lambda _: None)

    report = roll_back(agent, is_readable=True, is_overwrite_allowed=True)

    assert not (agent.root / "a.txt").exists() or not report.is_complete
    plan = get_plan(run_id=agent.run.id, now=SystemClock().now())
    assert {action.step: action.kind.value for action in plan.actions}[1] != "compensate"
