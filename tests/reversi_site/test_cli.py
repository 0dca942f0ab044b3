from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from reversi_site.cli.group import COMMANDS, LazyGroup, reversi
from tests.databases import Database
from tests.reversi_site.charges import command, open_charges
from tests.reversi_site.conftest import Answer, Shell

Reversi = Callable[..., Answer]


def all_commands() -> dict[str, click.Command]:
    found: dict[str, click.Command] = {}
    context = click.Context(reversi)
    for name in COMMANDS:
        child = reversi.get_command(context, name)
        assert child is not None
        found[name] = child
        if isinstance(child, click.Group):
            found |= {f"{name} {sub}": each for sub, each in child.commands.items()}
    return found


@pytest.mark.parametrize("name", all_commands())
def test_every_command_shows_examples_in_its_help(name: str, reversi: Reversi) -> None:
    answer = reversi(*name.split(), "--help")

    assert answer.code == 0
    assert re.search(r"Examples?:\n", answer.out)
    assert f"reversi {name.split(maxsplit=1)[0]}" in answer.out


def test_no_line_of_a_list_of_commands_is_cut_off(reversi: Reversi) -> None:
    groups = [[], *(name.split() for name, each in all_commands().items() if isinstance(each, click.Group))]

    lines = [line for group in groups for line in reversi(*group, "--help").lines if not line.startswith("Usage: ")]

    assert [line for line in lines if line.endswith("...")] == []


# These run until they are stopped, and print what a person waits for.
SERVING = frozenset({"up", "worker"})
PRINTING = [n for n, each in all_commands().items() if not isinstance(each, click.Group) and n not in SERVING]


@pytest.mark.parametrize("name", PRINTING)
def test_every_command_that_prints_data_takes_json(name: str) -> None:
    assert "--json" in {option for parameter in all_commands()[name].params for option in parameter.opts}


def test_help_needs_no_django_and_no_store(shell: Shell) -> None:
    script = (
        "import sys; from reversi_site.cli import main; code = main(['--help']);"
        "sys.exit(code or ('django' in sys.modules and 'django was imported') or ('yaml' in sys.modules and 'yaml'))"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], cwd=shell.folder, env=shell.env(), capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert all(name in done.stdout for name in COMMANDS)
    assert shell.names() == []


def test_commands_are_looked_up_in_the_table_only() -> None:
    assert LazyGroup("x").get_command(click.Context(reversi), "os") is None


def test_halts_are_added_listed_and_lifted_line_by_line(db: Database, reversi: Reversi) -> None:
    scope = ("--tool", "stripe.*", "--actor", "billing-agent")

    added = reversi("halt", "add", "investigating duplicate charges", *scope, "--by", "dana")
    listed = reversi("halt", "list")
    lifted = reversi("halt", "lift")

    line = re.compile(
        r"halt_[0-9a-f-]{36}  investigating duplicate charges  "
        r'scope=\{"tool":"stripe\.\*","actor":"billing-agent"\}  by dana'
    )
    assert (added.code, listed.code, lifted.code) == (0, 0, 0)
    assert line.fullmatch(added.lines[0])
    assert added.lines[1] == "0 matching calls in flight"
    assert [bool(line.fullmatch(text)) for text in listed.lines] == [True]
    assert lifted.lines == ["lifted 1"]
    assert reversi("halt", "list").lines == ["no halts"]


def test_halt_add_tells_how_many_calls_are_in_flight(sqlite_db: Database, reversi: Reversi, tmp_path: Path) -> None:
    open_charges(tmp_path, run_id="r").lose(amount=1)

    answer = reversi("halt", "add", "stop", "--json")

    assert answer.document["in_flight"] == 0
    assert answer.document["scope"] == {}
    assert answer.document["added_by"].startswith("local:")


def test_halt_lift_takes_one_id_or_all(sqlite_db: Database, reversi: Reversi) -> None:
    first = reversi("halt", "add", "one", "--json").document["id"]
    reversi("halt", "add", "two")
    reversi("halt", "add", "three")

    assert reversi("halt", "lift", first).lines == ["lifted 1"]
    assert reversi("halt", "lift", "all", "--json").document == {"lifted": 2}
    assert reversi("halt", "lift", "halt_unknown").code == 1
    assert [halt["lifted_by"] is not None for halt in reversi("halt", "list", "--all", "--json").document["halts"]] == [
        True,
        True,
        True,
    ]


def test_runs_are_opened_listed_shown_and_closed(db: Database, reversi: Reversi) -> None:
    opened = reversi("runs", "open", "--id", "r1", "--actor", "billing-agent", "--scope", "payments:*", "--json")
    made_up = reversi("runs", "open")

    assert (opened.document["created"], opened.document["mode"]) == (True, "enforce")
    assert re.fullmatch(r"run_[0-9A-Z]{26}", made_up.lines[0])
    assert reversi("runs", "open", "--id", "r1", "--json").document["created"] is False
    listed = reversi("runs", "list", "--actor", "billing-*", "--json").document["runs"]
    assert [run["id"] for run in listed] == ["r1"]
    assert reversi("runs", "list", "--since", "1h").lines[0].startswith(made_up.lines[0])
    assert reversi("runs", "close", "r1").lines == ["r1 is closed"]
    assert reversi("runs", "show", "r1", "--json").document["state"] == "closed"
    assert reversi("runs", "show", "nope").code == 1


def test_runs_list_keeps_those_that_need_attention(sqlite_db: Database, reversi: Reversi, tmp_path: Path) -> None:
    open_charges(tmp_path, run_id="calm").charge(amount=1, charge_id="ch_1")
    open_charges(tmp_path, run_id="lost").lose(amount=1)

    answer = reversi("runs", "list", "--attention", "--json")

    assert [run["id"] for run in answer.document["runs"]] == ["lost"]


def test_runs_show_is_a_timeline_with_summaries_and_blocked_calls(
    sqlite_db: Database, reversi: Reversi, tmp_path: Path
) -> None:
    charges = open_charges(tmp_path, run_id="r")
    charges.charge(amount=1, charge_id="ch_1")
    charges.lose(amount=2)
    reversi("halt", "add", "stop everything")
    with pytest.raises(Exception, match="kill switch: stop everything"):
        charges.charge(amount=3, charge_id="ch_3")

    lines = reversi("runs", "show", "r").lines
    document = reversi("runs", "show", "r", "--json").document

    assert [line.split()[1:3] for line in lines if "step " in line] == [["step", "0"], ["step", "1"]]
    assert any("uncertain" in line for line in lines)
    assert any("blocked" in line and "kill switch: stop everything" in line for line in lines)
    assert [step["state"] for step in document["steps"]] == ["succeeded", "uncertain"]
    assert document["blocked"][0]["violations"][0]["code"] == "halted"


def test_text_that_could_steer_a_terminal_is_made_visible(sqlite_db: Database, reversi: Reversi) -> None:
    reversi("runs", "open", "--id", "r", "--reason", "right\u202eto left")

    answer = reversi("runs", "show", "r")

    assert "\u202e" not in answer.out
    assert "right\\u{202e}to left" in answer.out


def test_ledger_verify_names_what_was_changed(sqlite_db: Database, reversi: Reversi, tmp_path: Path) -> None:
    open_charges(tmp_path, run_id="r").charge(amount=1, charge_id="ch_1")
    whole = reversi("ledger", "verify")
    raw = sqlite_db.raw()
    raw.execute("DROP TRIGGER ledger_event_no_update")
    raw.execute("UPDATE ledger_event SET actor = 'somebody else' WHERE run_id = 'r' AND seq = 1")

    broken = reversi("ledger", "verify", "r")
    document = reversi("ledger", "verify", "--json").document

    assert (whole.code, broken.code) == (0, 1)
    assert [line.split()[0] for line in whole.lines] == ["ok", "ok"]
    assert broken.lines[0].startswith("BROKEN r: ")
    assert "event 1: was changed after it was written" in broken.out
    assert document["ok"] is False


def test_kill_switch_makes_and_removes_the_file(shell: Shell) -> None:
    on = shell.run("kill-switch", "on", "KILL", "--reason", "agents misbehave")
    text = (shell.folder / "KILL").read_text()
    again = shell.run("kill-switch", "on", "KILL", "--reason", "another reason", "--json")
    off = shell.run("kill-switch", "off", REVERSI_KILL_FILE="KILL")
    off_again = shell.run("kill-switch", "off", "--json", REVERSI_KILL_FILE="KILL")

    assert (on.returncode, on.stdout) == (0, "kill switch on: KILL\n")
    assert text == "agents misbehave\n"
    assert json.loads(again.stdout) == {"file": "KILL", "on": True}
    assert "already on" in again.stderr
    assert (off.returncode, off.stdout, off.stderr) == (0, "kill switch off: KILL\n", "")
    assert json.loads(off_again.stdout) == {"file": "KILL", "on": False}
    assert shell.names() == []


def test_kill_switch_warns_of_a_file_that_nobody_watches(shell: Shell) -> None:
    (shell.folder / "reversi.config.yaml").write_text("kill_switch_file: WATCHED\n")

    configured = shell.run("kill-switch", "on")
    other = shell.run("kill-switch", "on", "OTHER")

    assert (configured.stdout, configured.stderr) == ("kill switch on: WATCHED\n", "")
    assert "this configuration watches WATCHED" in other.stderr


def test_the_example_of_three_manifests_is_valid(shell: Shell) -> None:
    (shell.folder / "manifests").mkdir()
    (shell.folder / "manifests" / "payments.yaml").write_text(PAYMENTS)

    done = shell.run("validate", "manifests")
    document = json.loads(shell.run("validate", "manifests", "--json").stdout)

    assert (done.returncode, done.stdout) == (0, "ok: 3 tool manifests valid\n")
    assert document == {"ok": True, "manifests": 3, "errors": []}
    assert shell.names() == ["manifests", "manifests/payments.yaml"]


def test_validate_tells_the_place_of_every_problem(shell: Shell) -> None:
    (shell.folder / "m.yaml").write_text(PAYMENTS.replace("tool: stripe.get_charge }", "tool: stripe.lookup }"))

    done = shell.run("validate", "m.yaml")
    errors = json.loads(shell.run("validate", "m.yaml", "--json").stdout)["errors"]

    assert done.returncode == 1
    assert (done.stdout.splitlines()[-1], len(errors)) == ("1 error", 1)
    assert errors[0]["tool"] == "stripe.create_charge"
    assert errors[0]["message"] == "no manifest for verification tool stripe.lookup"


def test_validate_names_the_contract_check_that_failed(shell: Shell) -> None:
    (shell.folder / "m.json").write_text('{"tool": "a.b", "permission": "p", "effect": {"class": "reversible"}}')

    (error,) = json.loads(shell.run("validate", "m.json", "--json").stdout)["errors"]

    assert (error["path"], error["code"]) == ("effect.inverse", "effect/reversible_without_inverse")


def test_an_output_that_nobody_reads_any_more_ends_quietly(shell: Shell) -> None:
    shell.run("runs", "open", "--id", "r")
    reading, writing = os.pipe()
    os.close(reading)

    with os.fdopen(writing, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "reversi_site.cli", "runs", "list"],
            cwd=shell.folder,
            env=shell.env(),
            stdout=closed,
            stderr=subprocess.PIPE,
            check=False,
        )

    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_rollback_says_so_and_gives_the_run_back(
    sqlite_db: Database, reversi: Reversi, shell: Shell, tmp_path: Path, number: signal.Signals
) -> None:
    open_charges(tmp_path, run_id="r").charge(amount=1, charge_id="ch_1")
    undo = command(tmp_path, "undo.sh", f"touch {tmp_path}/begun; exec sleep 60")
    keys = {"REVERSI_DATA": os.environ["REVERSI_DATA"]}
    process = shell.start("rollback", "r", "--compensator-cmd", undo, DATABASE_URL=sqlite_db.url, **keys)

    wait_for(tmp_path / "begun", process)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)

    assert (process.returncode, out) == (130, "")
    assert err.strip() == "reversi: interrupted"
    assert reversi("runs", "show", "r", "--json").document["rolling_back"] is False


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    while not path.exists():
        assert process.poll() is None, process.communicate()


PAYMENTS = """
- tool: stripe.get_charge
  description: Read one charge.
  effect: read_only
  permission: payments:read
- tool: stripe.create_charge
  description: Charge a card.
  effect: compensable
  permission: payments:write
  owner: payments-team@example.com
  oncall: payments-oncall
  risk: { data_class: financial, blast_radius: high, environment: prod }
  timeout_ms: 30s
  idempotency: { key: "charge-{{args.order_id}}", scope: global }
  audit:
    retention_days: 2555
    evidence_export: required
    redaction: [$args.card_token]
  approval:
    roles: [finance]
    quorum: 2
    timeout: 15m
    on_timeout: escalate
    escalate_to: [cfo]
  compensation:
    tool: stripe.refund
    kind: compensation
    residue: [the charge still appears on the customer's statement]
    requires_approval: false
    timeout_ms: 20s
    argument_map:
      charge_id: $result.id
      amount: $args.amount
    verification: { arguments: { charge_id: $result.id }, expect: { refunded: true }, tool: stripe.get_charge }
- tool: stripe.refund
  description: Refund a charge.
  effect: idempotent
  permission: payments:write
  retry: { attempts: 3, base_ms: 200ms, max_ms: 5s }
"""
