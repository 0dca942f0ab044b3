"""The README's server, curl and Python, executed as they stand there; only the port is another."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reversi_site.conftest import Shell
from tests.reversi_site.test_readme import README, block
from tests.reversi_site.test_up import Running, up
from tests.reversi_site.test_worker import eventually

SECTION = README.partition("\n## Agents over HTTP\n")[2].partition("\n## ")[0]
PORT = "8000"


def piece(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
    return str(found)


def scripts(folder: Path) -> None:
    """Put `reversi` and `python` where a shell finds them, as an activated environment does."""
    folder.mkdir()
    for name, module in (("reversi", "-m reversi_site.cli "), ("python", "")):
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {module}"$@"\n')
        (folder / name).chmod(0o755)


@pytest.fixture
def served(shell: Shell) -> Iterator[Running]:
    (shell.folder / "work").mkdir()
    manifests = [sys.executable, "-m", "connectors", "manifests", "fs", "--format", "yaml"]
    made = subprocess.run(manifests, env=shell.env(), capture_output=True, text=True, check=True)
    (shell.folder / "manifests.yaml").write_text(made.stdout)
    (shell.folder / "reversi.config.yaml").write_text(block("yaml"))
    scripts(shell.folder / "bin")
    with up(shell) as running:
        running.wait_until_ready()
        yield running


def run_bash(shell: Shell, running: Running, text: str) -> subprocess.CompletedProcess[str]:
    port = running.url.rstrip("/").rpartition(":")[2]
    env = shell.env()
    return subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", text.replace(f":{PORT}", f":{port}")],
        cwd=shell.folder,
        env=env | {"PATH": f"{shell.folder / 'bin'}:{env['PATH']}"},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_quick_start_with_curl_works_as_written(shell: Shell, served: Running) -> None:
    assert "reversi up" in SECTION
    done = run_bash(shell, served, piece("bash"))

    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == ["created the user notes-agent: agent", "created the user dana: operator"]
    run, call, outcome, plan, job, _ = [json.loads(line) for line in done.stdout.splitlines()]
    assert (run["id"], call["decision"], outcome["state"]) == ("run_curl", "allowed", "succeeded")
    assert (plan["fully_reversible"], job["state"]) == (True, "queued")
    assert eventually(lambda: not (shell.folder / "work" / "inbox").exists())
    assert eventually(lambda: "compensated" in shell.run("runs", "show", "run_curl").stdout)


def test_the_quick_start_with_python_works_as_written(shell: Shell, served: Running) -> None:
    port = served.url.rstrip("/").rpartition(":")[2]
    (shell.folder / "remote_agent.py").write_text(piece("python").replace(f":{PORT}", f":{port}"))
    (first, *_) = [line for line in piece("bash").splitlines() if line.startswith("key=")]
    (command,) = [line for line in SECTION.splitlines() if line.endswith("python remote_agent.py")]

    done = run_bash(shell, served, f"{first}\n{command}\n")

    assert done.returncode == 0, done.stderr
    assert done.stdout == "can be undone: True\nis undone: True\n"
    assert done.stderr == "created the user notes-agent: agent\n"
    assert not (shell.folder / "work" / "drafts").exists()
