from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from django.test import override_settings

from reversi_site.doctor import Finding, Level, examine
from reversi_site.kit.clock import database_now_ms
from reversi_site.models import Heartbeat, Schedule
from reversi_site.recorded_upstreams import record_upstream
from reversi_site.schedules import ensure_schedules
from tests.databases import Database
from tests.ledger.factories import make_run, make_step
from tests.postgres import REPOSITORY
from tests.reversi_site.conftest import Answer, Shell
from tests.rollback.factories import make_handle

Reversi = Callable[..., Answer]
HOUR_MS = 3_600_000


def found(name: str) -> Finding:
    return next(finding for finding in examine() if finding.name == name)


def test_a_fresh_store_is_well_but_for_what_was_not_set_up(db: Database) -> None:
    findings = examine()

    assert [finding for finding in findings if finding.level is Level.FAIL] == []
    assert {finding.name for finding in findings if finding.level is Level.WARN} == {"worker", "manifests"}
    assert all(finding.remedy for finding in findings if finding.level is not Level.OK)


def test_doctor_prints_a_line_a_finding(sqlite_db: Database, reversi: Reversi) -> None:
    text, document = reversi("doctor"), reversi("doctor", "--json")

    assert (text.code, document.code) == (0, 0)
    assert all(line.split()[0] in ("ok", "warn") for line in text.lines)
    assert any(line.startswith("warn worker: none ever ran → start `reversi worker`") for line in text.lines)
    assert document.document["ok"] is True
    assert len(document.document["checks"]) == len(text.lines)


def test_a_worker_that_fell_silent_fails(db: Database, reversi: Reversi) -> None:
    Heartbeat.objects.create(host="a", beaten_ms=database_now_ms() - HOUR_MS)

    assert found("worker").level is Level.FAIL
    assert reversi("doctor").code == 1

    Heartbeat.objects.create(host="b", beaten_ms=database_now_ms() - 1_000)

    assert found("worker").level is Level.OK


def test_schedules_that_are_off_late_or_broken_are_told(db: Database) -> None:
    ensure_schedules()
    now_ms = database_now_ms()
    Schedule.objects.update(next_run_ms=now_ms + 1_000)
    Schedule.objects.filter(job="heartbeat").update(is_on=False)
    Schedule.objects.filter(job="job_recovery").update(next_run_ms=now_ms - HOUR_MS)
    Schedule.objects.filter(job="timeout_sweep").update(last_error="OSError: disk full")

    assert found("schedule heartbeat").level is Level.WARN
    assert found("schedule job_recovery").level is Level.FAIL
    assert found("schedule timeout_sweep").fact.endswith("OSError: disk full")


def test_a_changed_governance_log_fails(sqlite_db: Database, reversi: Reversi) -> None:
    reversi("halt", "add", "first")
    raw = sqlite_db.raw()
    raw.execute("DROP TRIGGER ledger_governanceevent_no_update")
    raw.execute("UPDATE ledger_governanceevent SET actor = 'somebody else'")

    assert found("governance log").level is Level.FAIL


def test_a_row_that_its_events_contradict_fails(sqlite_db: Database, reversi: Reversi) -> None:
    run = make_run(run_id="run_changed")
    make_step(run_id=run.id)
    assert found("runs").level is Level.OK
    sqlite_db.raw().execute("UPDATE ledger_step SET state = 'compensated'")

    finding, verified = found("run run_changed"), reversi("ledger", "verify")

    assert (finding.level, finding.fact) == (
        Level.FAIL,
        "step 0: the row says compensated, its events say succeeded",
    )
    assert (verified.code, verified.lines[1]) == (1, "  step 0: the row says compensated, its events say succeeded")


def test_halts_are_told(sqlite_db: Database, reversi: Reversi) -> None:
    reversi("halt", "add", "first")

    assert found("halts").fact == "1 stand and block calls"


def test_a_key_that_others_can_read_fails(shell: Shell) -> None:
    shell.run("runs", "list")
    (shell.folder / "reversi-data" / "ledger.keys").chmod(0o644)
    (shell.folder / "reversi-data").chmod(0o755)

    done = shell.run("doctor")

    assert done.returncode == 1
    assert "FAIL key ledger.keys: mode 0644: others can read it → chmod 600" in done.stdout
    assert "warn data folder: others may look into" in done.stdout


def test_what_the_configuration_names_is_checked(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "m.yaml").write_text("- {tool: a.b, effect: read_only, permission: p}\n")
    (tmp_path / "KILL").write_text("stop\n")
    settings = {
        "manifests": "m.yaml",
        "kill_switch_file": "KILL",
        "compensator_cmd": "./undo.sh --fast",
        "reader_cmd": "cat",
        "upstreams": [{"connector": "fs", "root": "work"}, {"name": "gone", "connector": "fs", "root": "nowhere"}],
    }
    (tmp_path / "reversi.config.yaml").write_text(json.dumps(settings))

    done = shell.run("doctor", "--json")

    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert done.returncode == 1
    assert checks["manifests"]["fact"].startswith("1 tools from plain files")
    assert checks["upstream fs"]["level"] == "ok"
    assert checks["upstream gone"]["level"] == "FAIL"
    assert checks["compensator_cmd"]["level"] == "FAIL"
    assert checks["reader_cmd"]["level"] == "ok"
    assert checks["kill switch"]["level"] == "warn"


def test_what_another_configuration_served_is_told(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "its.yaml").write_text("upstreams: [{name: files, connector: fs, root: work}]")
    place = str(tmp_path / "work")
    record_upstream(tmp_path / "reversi-data", "files", place=place)

    without, with_it = shell.run("doctor"), shell.run("--config", "its.yaml", "doctor")

    told = f"warn upstream files: calls on this store went to the one at {place}, this configuration has it nowhere"
    assert told in without.stdout
    assert "went to the one at" not in with_it.stdout
    assert "ok   upstream files: connector fs" in with_it.stdout


def test_manifests_that_are_invalid_fail(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text("- {tool: a.b}\n")
    (tmp_path / "reversi.config.yaml").write_text("manifests: m.yaml\n")

    done = shell.run("doctor")

    assert done.returncode == 1
    assert "FAIL manifests: " in done.stdout


def test_a_store_that_does_not_open_is_one_failure(shell: Shell) -> None:
    done = shell.run("doctor", "--json", DATABASE_URL="postgres://nobody@127.0.0.1:1/none")

    checks = json.loads(done.stdout)["checks"]
    assert done.returncode == 1
    assert [(check["name"], check["level"]) for check in checks] == [("store", "FAIL")]
    assert "Traceback" not in done.stderr


def test_handles_whose_key_was_lost_fail(db: Database) -> None:
    run = make_run()
    make_step(run_id=run.id, handle=make_handle())
    assert found("key ring").level is Level.OK

    with override_settings(REVERSI_LEDGER_KEYS={"new": bytes(32)}):
        finding = found("key ring")

    assert finding.level is Level.FAIL
    assert "cannot be undone" in finding.fact
    assert "from your copy" in finding.remedy


def test_a_malformed_configuration_is_not_called_a_store(shell: Shell) -> None:
    (shell.folder / "reversi.config.yaml").write_text("upstreams: 3")

    done = shell.run("doctor")

    assert done.returncode == 1
    assert "FAIL configuration: reversi.config.yaml: upstreams: must be a list" in done.stdout


def server_entry(*arguments: str) -> str:
    command = [sys.executable, "-m", "tests.gateway.mcp.servers.hostile_stdio", *arguments]
    environment = {"PYTHONPATH": str(REPOSITORY)}
    upstream = {"name": "shop", "cmd": command[0], "args": command[1:], "env": environment, "cwd": str(REPOSITORY)}
    return json.dumps({"upstreams": [upstream]})


def test_an_upstream_that_answers_is_well(shell: Shell) -> None:
    (shell.folder / "reversi.config.yaml").write_text(server_entry())

    done = shell.run("doctor")

    assert "ok   upstream shop: MCP server" in done.stdout


def test_an_upstream_that_cannot_start_fails_with_its_last_words(shell: Shell) -> None:
    (shell.folder / "reversi.config.yaml").write_text(server_entry("--start", "exit"))

    done = shell.run("doctor")

    assert done.returncode == 1
    assert "FAIL upstream shop" in done.stdout
    assert "no such database" in done.stdout
