"""Part two: not everything can be undone, and the report says exactly so; then the person on call settles the rest."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ledger.queries import get_run, list_events, list_steps
from reversi_sdk.references import MISSING
from reversi_site.cli.timeline import resolved_lines, timeline_lines
from reversi_site.demo.agent import BILLING, start_agent
from reversi_site.demo.narrator import Narrator
from reversi_site.demo.stage import Stage
from reversi_site.demo.tree import differences, photograph
from reversi_site.identity import local_principal
from reversi_site.kit.clock import SystemClock
from rollback.core.ports import Tools
from rollback.core.report import Report
from rollback.core.text import plan_lines, report_lines
from rollback.executors.connector import ConnectorExecutor, ConnectorReader
from rollback.operations.execution import run_foreground
from rollback.operations.resolution import resolve
from rollback.queries import get_plan

FILE, CHARGE, LOST_CHARGE, TICKET, MAIL = range(5)


def play(stage: Stage, narrator: Narrator) -> str:
    """Play the part and return the run's id."""
    narrator.title("Part 2: not everything can be undone, and nobody pretends otherwise")
    before = photograph(stage.sandbox)
    tools = Tools(ConnectorExecutor(stage.files, stage.desk), ConnectorReader(stage.files, stage.desk))
    run_id = _work(stage, narrator)
    _plan(run_id, narrator)
    _first_rollback(stage, narrator, run_id, tools)
    _settle(stage, narrator, run_id, tools)
    _second_rollback(stage, narrator, run_id, tools)
    found = differences(before, photograph(stage.sandbox))
    narrator.expect("the folder is again what it was before this run", not found, found)
    return run_id


def _work(stage: Stage, narrator: Narrator) -> str:
    narrator.say(
        "A second agent works in observe mode: nothing is blocked, everything is written down. It writes an "
        "invoice, charges a card for the goods and again for the delivery, opens a ticket and sends a mail. The answer "
        "to the second charge gets lost on the way back. The ticket service will claim to close tickets, and not do it."
    )
    agent = start_agent(
        stage,
        actor="billing-agent",
        mode="observe",
        scope=("fs:*", "payments:*", "tickets:*", "mail:*"),
        reason="bill order 12",
        now=SystemClock().now(),
    )
    endings = [agent.call(tool, args) for tool, args in BILLING]
    steps = list_steps(agent.run_id)
    narrator.show(timeline_lines(get_run(agent.run_id), steps, list_events(agent.run_id)))
    states = [step.state.value for step in steps]
    expected = ["succeeded", "succeeded", "uncertain", "succeeded", "succeeded"]
    narrator.expect("the lost answer is journaled as uncertain, not as failed", states == expected, (states, endings))
    return agent.run_id


def _plan(run_id: str, narrator: Narrator) -> None:
    plan = get_plan(run_id=run_id, now=SystemClock().now())
    narrator.say("The plan says beforehand what will not work:")
    narrator.show_briefly(plan_lines(plan))
    kinds = {action.step: action.kind.value for action in plan.actions}
    narrator.expect("the plan does not claim that everything can be undone", not plan.fully_reversible)
    narrator.expect("the mail cannot be undone", kinds[MAIL] == "unrecoverable", kinds)
    narrator.expect("the lost charge must be looked into first", kinds[LOST_CHARGE] == "unresolved", kinds)


def _first_rollback(stage: Stage, narrator: Narrator, run_id: str, tools: Tools) -> None:
    narrator.say("The rollback, this time in the foreground, does what can be done:")
    report = run_foreground(run_id=run_id, tools=tools, actor=local_principal())
    narrator.show_briefly(report_lines(report))
    data = report.to_json()
    failed = [entry["step"] for entry in data["failed"]]
    narrator.expect("it is INCOMPLETE, and says so", not report.is_complete)
    narrator.expect(
        "the file and the first charge were undone", data["compensated"] == [FILE, CHARGE], data["compensated"]
    )
    narrator.expect("the undo that lied was caught by its read-back", failed == [TICKET], data["failed"])
    narrator.expect("the lost charge was left alone", data["unresolved"] == [LOST_CHARGE], data["unresolved"])
    narrator.expect("the mail is called unrecoverable", data["unrecoverable"] == [MAIL], data["unrecoverable"])
    charges = stage.books.book("payments")
    refunds = [entry["refunded"] for entry in charges.values()]
    narrator.expect("in the payment book one of the two charges is refunded", refunds == [True, False], charges)


def _settle(stage: Stage, narrator: Narrator, run_id: str, tools: Tools) -> None:
    narrator.say(
        "Now the person on call looks at the services. The second charge did happen: it is in the payment book. The "
        "ticket is still open, so it is closed by hand. The mail is out; a correction is sent after it."
    )
    found = next(entry for entry, charge in stage.books.book("payments").items() if not charge["refunded"])
    stage.books.change("tickets", "ticket_1", status="closed")
    stage.books.add("outbox", "mail", {"to": "customer@example.org", "subject": "Correction: order 12 is cancelled"})
    words = (
        Word(LOST_CHARGE, "succeeded", f"found {found} in the payment book", {"id": found}),
        Word(TICKET, "compensated", "closed the ticket by hand"),
        Word(MAIL, "compensated", "sent a correction"),
    )
    for word in words:
        step = resolve(
            run_id=run_id,
            number=word.step,
            status=word.status,
            note=word.note,
            actor=local_principal(),
            tools=tools,
            result=word.result,
        )
        narrator.show([f"$ {word.command(run_id)}", *resolved_lines(step)])
        narrator.expect(f"step {word.step} is settled by a person's word", step.state.value == word.status, step.state)


@dataclass(frozen=True, slots=True)
class Word:
    """What a person found out about a step."""

    step: int
    status: str
    note: str
    result: Any = MISSING

    def command(self, run_id: str) -> str:
        """Return what the person types."""
        result = "" if self.result is MISSING else f" --result '{json.dumps(self.result)}'"
        return f'reversi resolve {run_id} {self.step} --status {self.status}{result} --note "{self.note}"'


def _second_rollback(stage: Stage, narrator: Narrator, run_id: str, tools: Tools) -> None:
    narrator.say("A second rollback skips what is undone and finishes the rest:")
    first_refund = stage.books.book("payments")["ch_1"]
    report = run_foreground(run_id=run_id, tools=tools, actor=local_principal())
    narrator.show_briefly(report_lines(report))
    _check_second(stage, narrator, report)
    charges = stage.books.book("payments")
    refunds = [charge["refunded"] for charge in charges.values()]
    narrator.expect("both charges are refunded", refunds == [True, True], charges)
    narrator.expect("the first refund was not sent again", charges["ch_1"] == first_refund, charges)


def _check_second(stage: Stage, narrator: Narrator, report: Report) -> None:
    data = report.to_json()
    narrator.expect("the rollback is complete", report.is_complete)
    narrator.expect("what was done by hand is listed as such", data["by_hand"] == [TICKET, MAIL], data["by_hand"])
    narrator.expect("what nobody could read back is listed too", data["unchecked"] == [MAIL], data["unchecked"])
    narrator.expect("the mail itself is still in the outbox", "mail_1" in stage.books.book("outbox"))
