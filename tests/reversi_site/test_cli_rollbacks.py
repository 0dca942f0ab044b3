from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ledger.queries import get_run
from tests.databases import Database
from tests.reversi_site.charges import command, open_charges
from tests.reversi_site.conftest import Answer, Shell

Reversi = Callable[..., Answer]
REFUNDED = """echo '{"refunded": true}'"""


def test_plan_shows_what_the_worked_example_shows(sqlite_db: Database, reversi: Reversi, tmp_path: Path) -> None:
    open_charges(tmp_path, run_id="run_v").charge(amount=700, charge_id="ch_o9")

    answer = reversi("plan", "run_v", "--json")

    assert answer.code == 0
    action = answer.document["actions"][0]
    expected = {
        "step": 0,
        "tool": "stripe.create_charge",
        "kind": "compensate",
        "compensation_tool": "stripe.refund",
        "args": {"amount": 700, "charge_id": "ch_o9"},
        "idempotency_key": "e5ecbb51d5597b6dfb2e2914a0921be1efca3ef93919a06466d0f3d777a343b3",
        "needs_approval": False,
        "residue": ["the charge still appears on the customer's statement"],
        "compensation_kind": "compensation",
        "verified": True,
    }
    assert {name: action[name] for name in expected} == expected
    assert (answer.document["run_id"], answer.document["fully_reversible"]) == ("run_v", True)


def test_an_uncertain_step_is_planned_and_resolved_line_by_line(db: Database, reversi: Reversi, tmp_path: Path) -> None:
    open_charges(tmp_path, run_id="run_timeout").lose(amount=700)

    planned = reversi("plan", "run_timeout")
    resolved = reversi(
        "resolve",
        "run_timeout",
        "0",
        "--status",
        "succeeded",
        "--result",
        '{"id":"ch_o50"}',
        "--note",
        "found ch_o50 in the Stripe dashboard",
        "--actor",
        "dana",
    )
    again = reversi("plan", "run_timeout")

    assert planned.code == 2
    unresolved = "  step 0  stripe.create_charge  unresolved  outcome unknown: reconcile with the downstream system"
    assert planned.lines[0] == unresolved
    assert planned.lines[-1] == "  NOT fully reversible: see above"
    assert (resolved.code, resolved.lines[0]) == (0, "step 0 is now succeeded")
    assert resolved.lines[1].startswith("  stripe.create_charge amount=700")
    assert again.lines[0] == "  step 0  stripe.create_charge  compensate  -> stripe.refund"
    assert again.code == 0


def test_resolve_without_a_result_says_that_the_step_cannot_be_undone(
    sqlite_db: Database, reversi: Reversi, tmp_path: Path
) -> None:
    open_charges(tmp_path, run_id="r").lose(amount=700)

    answer = reversi("resolve", "r", "0", "--status", "succeeded", "--note", "seen")

    assert answer.lines[0] == "step 0 is now succeeded"
    assert answer.lines[-1].startswith("it cannot be undone: ")
    assert reversi("plan", "r").code == 2


def test_rollback_hands_the_call_to_the_compensator_and_reads_back(
    db: Database, reversi: Reversi, tmp_path: Path
) -> None:
    open_charges(tmp_path, run_id="run_v").charge(amount=700, charge_id="ch_o9")
    undo = command(tmp_path, "undo.sh", f"cat > {tmp_path}/call.json")
    read = command(tmp_path, "read.sh", f"cat > {tmp_path}/asked.json; {REFUNDED}")

    answer = reversi("rollback", "run_v", "--compensator-cmd", undo, "--reader-cmd", read)

    assert (answer.code, answer.lines[-1]) == (0, "rollback COMPLETE")
    assert json.loads((tmp_path / "call.json").read_text()) == {
        "run_id": "run_v",
        "step": 0,
        "tool": "stripe.refund",
        "original_tool": "stripe.create_charge",
        "args": {"amount": 700, "charge_id": "ch_o9"},
        "idempotency_key": "e5ecbb51d5597b6dfb2e2914a0921be1efca3ef93919a06466d0f3d777a343b3",
    }
    asked = json.loads((tmp_path / "asked.json").read_text())
    assert asked == {"tool": "stripe.get_charge", "arguments": {"charge_id": "ch_o9"}}


def test_rollback_without_a_reader_names_the_unverified_steps(
    sqlite_db: Database, reversi: Reversi, tmp_path: Path
) -> None:
    open_charges(tmp_path, run_id="r").charge(amount=700, charge_id="ch_1")
    undo = command(tmp_path, "undo.sh", "cat >/dev/null")

    text = reversi("rollback", "r", "--compensator-cmd", undo)
    document = reversi("rollback", "--last", "--compensator-cmd", undo, "--json").document

    assert text.code == 2
    assert text.lines[-2:] == [
        "undone but not verified (declared read-back not run; pass --reader-cmd): 0",
        "rollback INCOMPLETE",
    ]
    assert document["unverified"] == [0]


def test_verify_runs_the_open_read_backs(sqlite_db: Database, reversi: Reversi, tmp_path: Path) -> None:
    open_charges(tmp_path, run_id="r").charge(amount=700, charge_id="ch_1")
    reversi("rollback", "r", "--compensator-cmd", command(tmp_path, "undo.sh", "cat >/dev/null"))

    answer = reversi("verify", "r", "--reader-cmd", command(tmp_path, "read.sh", REFUNDED))

    assert (answer.code, answer.lines[-1]) == (0, "rollback COMPLETE")


def test_rollback_fails_a_step_that_its_reader_contradicts(
    sqlite_db: Database, reversi: Reversi, tmp_path: Path
) -> None:
    open_charges(tmp_path, run_id="r").charge(amount=700, charge_id="ch_1")
    undo = command(tmp_path, "undo.sh", "cat >/dev/null")
    read = command(tmp_path, "read.sh", """echo '{"refunded": false}'""")

    answer = reversi("rollback", "r", "--compensator-cmd", undo, "--reader-cmd", read, "--json")

    assert answer.code == 2
    error = "verification failed: stripe.get_charge did not show the expected state after the undo"
    assert answer.document["failed"] == [{"step": 0, "error": error}]


def test_rollback_retries_with_the_same_key(sqlite_db: Database, reversi: Reversi, tmp_path: Path) -> None:
    open_charges(tmp_path, run_id="r").charge(amount=700, charge_id="ch_1")
    undo = command(tmp_path, "undo.sh", f"cat >> {tmp_path}/calls; echo >> {tmp_path}/calls; exit 1")

    answer = reversi("rollback", "r", "--compensator-cmd", undo, "--retries", "2")

    calls = [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]
    assert answer.code == 2
    assert len(calls) == 2
    assert calls[0]["idempotency_key"] == calls[1]["idempotency_key"]


def test_verify_cmd_fails_an_undo_that_it_does_not_confirm(
    sqlite_db: Database, reversi: Reversi, tmp_path: Path
) -> None:
    open_charges(tmp_path, run_id="r").charge(amount=700, charge_id="ch_1")
    undo = command(tmp_path, "undo.sh", "cat >/dev/null")
    check = command(tmp_path, "check.sh", "cat >/dev/null; exit 3")

    answer = reversi("rollback", "r", "--compensator-cmd", undo, "--verify-cmd", check, "--json")

    assert [entry["step"] for entry in answer.document["failed"]] == [0]


def test_rollback_executes_the_plan_of_the_digest_or_nothing(
    sqlite_db: Database, reversi: Reversi, tmp_path: Path
) -> None:
    charges = open_charges(tmp_path, run_id="r")
    charges.charge(amount=700, charge_id="ch_1")
    digest = reversi("plan", "r", "--json").document["digest"]
    charges.charge(amount=900, charge_id="ch_2")
    undo = command(tmp_path, "undo.sh", f"touch {tmp_path}/ran")

    answer = reversi("rollback", "r", "--digest", digest, "--compensator-cmd", undo)

    assert answer.code == 1
    assert answer.err.startswith("reversi: the plan of run r changed since it was shown")
    assert not (tmp_path / "ran").exists()


def test_rollback_of_a_selection_leaves_the_rest(sqlite_db: Database, reversi: Reversi, tmp_path: Path) -> None:
    charges = open_charges(tmp_path, run_id="r")
    for number in range(3):
        charges.charge(amount=number, charge_id=f"ch_{number}")
    undo = command(tmp_path, "undo.sh", "cat >/dev/null")
    read = command(tmp_path, "read.sh", REFUNDED)
    commands = ("--compensator-cmd", undo, "--reader-cmd", read, "--json")

    later = reversi("rollback", "r", "--to-step", "1", *commands)
    first = reversi("rollback", "r", "--steps", "0", *commands)

    assert (later.code, later.document["compensated"]) == (0, [2])
    assert (first.code, first.document["compensated"]) == (0, [0])
    assert [
        action["step"]
        for action in reversi("plan", "r", "--json").document["actions"]
        if action["kind"] == "compensate"
    ] == [1]


def test_rollback_closes_the_run_when_asked(sqlite_db: Database, reversi: Reversi, tmp_path: Path) -> None:
    open_charges(tmp_path, run_id="r").charge(amount=1, charge_id="ch_1")

    reversi("rollback", "r", "--close", "--compensator-cmd", command(tmp_path, "undo.sh", "cat >/dev/null"))

    assert get_run("r").state == "closed"


def test_rollback_without_anything_that_runs_undos_sends_nothing(
    sqlite_db: Database, reversi: Reversi, tmp_path: Path
) -> None:
    open_charges(tmp_path, run_id="r").charge(amount=1, charge_id="ch_1")

    answer = reversi("rollback", "r", "--json")

    assert answer.code == 2
    assert answer.document["failed"] == [{"step": 0, "error": "nothing can run stripe.refund"}]


def test_resolve_compensated_records_an_undo_by_hand(sqlite_db: Database, reversi: Reversi, tmp_path: Path) -> None:
    charges = open_charges(tmp_path, run_id="r", mode="observe")
    charges.mail()

    answer = reversi("resolve", "r", "0", "--status", "compensated", "--note", "sent a correction", "--actor", "dana")

    assert answer.lines[0] == "step 0 is now compensated"
    assert reversi("plan", "r").code == 0
    assert "undone by hand" in reversi("runs", "show", "r").out


def test_resolve_refuses_what_the_read_back_contradicts(sqlite_db: Database, reversi: Reversi, tmp_path: Path) -> None:
    open_charges(tmp_path, run_id="r").charge(amount=1, charge_id="ch_1")
    reversi("rollback", "r", "--compensator-cmd", command(tmp_path, "undo.sh", "exit 1"))
    read = command(tmp_path, "read.sh", """echo '{"refunded": false}'""")

    answer = reversi("resolve", "r", "0", "--status", "compensated", "--note", "done", "--reader-cmd", read)

    assert answer.code == 1
    assert "does not look undone" in answer.err


def test_show_tells_of_a_read_back_only_where_something_was_undone(
    sqlite_db: Database, reversi: Reversi, tmp_path: Path
) -> None:
    open_charges(tmp_path, run_id="r").charge(amount=1, charge_id="ch_1")
    before = reversi("runs", "show", "r", "--json").document
    reversi("rollback", "r", "--compensator-cmd", command(tmp_path, "undo.sh", "cat >/dev/null"))
    after = reversi("runs", "show", "r", "--json").document

    assert (before["steps"][0]["read_back"], after["steps"][0]["read_back"]) == (None, "unverified")


@pytest.mark.parametrize("selection", [("--steps", "7"), ("--to-step", "9")])
def test_plan_refuses_steps_that_the_run_does_not_have(
    sqlite_db: Database, reversi: Reversi, tmp_path: Path, selection: tuple[str, str]
) -> None:
    open_charges(tmp_path, run_id="r").charge(amount=1, charge_id="ch_1")

    answer = reversi("plan", "r", *selection)

    assert (answer.code, answer.out) == (1, "")
    assert "the run has no step" in answer.err


@pytest.mark.parametrize("result", ['{"id": "\\ud800"}', '{"id": 123456789012345678901234567890}', "null", '"text"'])
def test_resolve_takes_whatever_a_call_may_have_answered(
    sqlite_db: Database, reversi: Reversi, tmp_path: Path, result: str
) -> None:
    open_charges(tmp_path, run_id="r").lose(amount=700)

    answer = reversi("resolve", "r", "0", "--status", "succeeded", "--note", "seen", "--result", result)

    assert answer.lines[0] == "step 0 is now succeeded"
    assert reversi("plan", "r", "--json").code in (0, 2)


def test_progress_is_shown_on_a_terminal_and_only_there(sqlite_db: Database, shell: Shell, tmp_path: Path) -> None:
    open_charges(tmp_path, run_id="r").charge(amount=1, charge_id="ch_1")
    undo = command(tmp_path, "undo.sh", "cat >/dev/null")
    terminal, side = pty.openpty()

    done = subprocess.run(
        [sys.executable, "-m", "reversi_site.cli", "rollback", "r", "--compensator-cmd", undo, "--json"],
        env=shell.env(DATABASE_URL=sqlite_db.url, REVERSI_DATA=os.environ["REVERSI_DATA"]),
        stdout=subprocess.PIPE,
        stderr=side,
        check=False,
    )
    os.close(side)

    with os.fdopen(terminal, "rb", buffering=0) as screen:
        assert screen.read(1000).startswith(b"[1/1] step 0  stripe.create_charge  compensated")
    assert json.loads(done.stdout)["compensated"] == [0]
