"""The demonstration as a stranger runs it, and the parts it judges by."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from reversi_site.demo.narrator import Narrator
from reversi_site.demo.stage import enter, set_stage
from reversi_site.demo.tree import differences, photograph, plant
from reversi_site.demo.worker_process import interruptions_held_back
from tests.databases import Database
from tests.reversi_site.charges import NOW
from tests.reversi_site.conftest import Shell


def test_demo_does_its_job_and_leaves_nothing_running(shell: Shell) -> None:
    done = shell.run("demo")

    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert "[NOT SO]" not in done.stdout
    assert lines.count("    rollback COMPLETE") == 2
    assert lines.count("    rollback INCOMPLETE") == 1
    assert sum(line.startswith("  [ok] ") for line in lines) == int(lines[-1].split()[0])
    assert not _still_there(shell.folder)
    commands = [line.split() for line in lines if line.endswith("runs list")]
    assert len(commands) == 1
    assert (
        subprocess.run(commands[0], env=shell.env(), cwd=shell.folder, capture_output=True, check=False).returncode == 0
    )


def test_what_the_demo_says_to_open_next_can_be_opened(shell: Shell) -> None:
    done = shell.run("demo", "--json")
    document = json.loads(done.stdout)
    store = str(Path(document["folder"]) / "store")

    assert (done.returncode, document["ok"]) == (0, True)
    assert all(each["met"] for each in document["expectations"])
    assert [line.split()[0] for line in shell.run("--data", store, "runs", "list").stdout.splitlines()] == document[
        "runs"
    ][::-1]
    assert all(shell.run("--data", store, "runs", "show", run).returncode == 0 for run in document["runs"])
    assert shell.run("--data", store, "plan", document["runs"][1]).returncode == 0
    assert shell.run("--data", store, "ledger", "verify").returncode == 0


def test_demo_journals_into_a_shared_database_when_asked(postgres_db: Database, shell: Shell) -> None:
    done = shell.run("demo", "--use-database", "--json", DATABASE_URL=postgres_db.url)

    assert done.returncode == 0, done.stderr
    runs = shell.run("runs", "list", DATABASE_URL=postgres_db.url).stdout
    assert all(run in runs for run in json.loads(done.stdout)["runs"])


def test_demo_uses_nothing_that_the_caller_configured(shell: Shell) -> None:
    (shell.folder / "reversi.config.yaml").write_text("nonsense: 1\n")
    caller = {
        "DATABASE_URL": "postgres://nobody@127.0.0.1:1/none",
        "REVERSI_KILL_FILE": str(shell.folder / "reversi.config.yaml"),
        "REVERSI_TOOLS": "nowhere.at.all",
        "REVERSI_LEDGER_KEYS": "broken",
    }

    assert shell.run("demo", **caller).returncode == 0


def test_a_demo_that_is_told_to_stop_stops_its_worker(shell: Shell) -> None:
    process = shell.start("demo")
    while not list(shell.folder.glob("reversi-data/demo-*/worker.log")):
        assert process.poll() is None

    process.terminate()
    _, err = process.communicate(timeout=60)

    assert (process.returncode, err.strip()) == (130, "reversi: interrupted")
    assert not _still_there(shell.folder)


def _start_while_interrupted(stopped: list[str]) -> None:
    with ExitStack() as afterwards, interruptions_held_back():
        signal.raise_signal(signal.SIGINT)
        afterwards.callback(stopped.append, "worker")


def test_an_interruption_waits_until_what_was_started_is_known() -> None:
    before = signal.getsignal(signal.SIGINT)
    stopped: list[str] = []

    with pytest.raises(KeyboardInterrupt):
        _start_while_interrupted(stopped)

    assert stopped == ["worker"]
    assert signal.getsignal(signal.SIGINT) is before


def test_demo_in_a_place_that_cannot_be_written_says_so(shell: Shell) -> None:
    (shell.folder / "taken").write_text("mine")

    done = shell.run("--data", "taken", "demo")

    assert done.returncode == 69
    assert "cannot be used" in done.stderr
    assert "Traceback" not in done.stderr


def _still_there(folder: Path) -> list[str]:
    """Processes that work in the folder's store."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if os.fsencode(folder) in path.read_bytes():
                found.append(path.parent.name)
        except OSError:
            continue
    return found


def test_an_expectation_that_does_not_hold_is_said_and_counts() -> None:
    lines: list[str] = []
    narrator = Narrator(lines.extend)

    narrator.expect("one is one", True)
    narrator.expect("one is two", False, 1)

    assert lines == ["  [ok] one is one", "  [NOT SO] one is two (seen: 1)"]
    assert not narrator.is_content


def test_a_narrator_that_checked_nothing_is_not_content() -> None:
    assert not Narrator(lambda lines: None).is_content


def test_what_stays_behind_is_told_once_in_a_list() -> None:
    lines: list[str] = []

    Narrator(lines.extend).show_briefly(["step 1", "  stays behind: a copy", "step 0", "  stays behind: a copy"])

    assert lines == ["", "    step 1", "      stays behind: a copy", "    step 0"]


def _spoil_content(root: Path) -> None:
    path = root / "keep" / "nested" / "рецепт 📄.txt"
    path.write_bytes(path.read_bytes()[::-1])


def _spoil_mode(root: Path) -> None:
    (root / "scripts" / "run.sh").chmod(0o755)


def _spoil_folder_mode(root: Path) -> None:
    (root / "keep" / "empty").chmod(0o755)


def _spoil_name(root: Path) -> None:
    (root / "keep" / "empty").rmdir()


def _spoil_kind(root: Path) -> None:
    (root / "README.txt").unlink()
    (root / "README.txt").symlink_to("config")


SPOILT: Sequence[tuple[object, str]] = (
    (_spoil_content, "keep/nested/рецепт 📄.txt: had "),
    (_spoil_mode, "scripts/run.sh: had mode 0750, has 0755"),
    (_spoil_folder_mode, "keep/empty: had mode 0711, has 0755"),
    (_spoil_name, "keep/empty: is gone"),
    (_spoil_kind, "README.txt: was a file, is a link"),
)


@pytest.mark.parametrize(("spoil", "said"), SPOILT)
def test_two_photographs_differ_in_whatever_was_changed(tmp_path: Path, spoil: object, said: str) -> None:
    plant(tmp_path)
    before = photograph(tmp_path)
    assert callable(spoil)
    spoil(tmp_path)

    found = differences(before, photograph(tmp_path))

    assert len(found) == 1
    assert found[0].startswith(said)


def test_two_photographs_of_an_untouched_tree_are_equal(tmp_path: Path) -> None:
    plant(tmp_path)

    assert differences(photograph(tmp_path), photograph(tmp_path)) == ()


def test_the_stage_keeps_the_data_folder_from_others(tmp_path: Path) -> None:
    set_stage(tmp_path / "data", now=NOW)

    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700


def test_entering_the_stage_leaves_only_what_helps_debugging(tmp_path: Path) -> None:
    stage = set_stage(tmp_path, now=NOW)
    environ = {"REVERSI_DEBUG": "1", "REVERSI_KILL_FILE": "x", "DATABASE_URL": "postgres://h/db", "PATH": "p"}

    enter(stage, environ)

    assert environ == {
        "REVERSI_DEBUG": "1",
        "PATH": "p",
        "REVERSI_DATA": str(stage.store),
        "REVERSI_CONFIG": str(stage.folder / "reversi.config.yaml"),
    }
