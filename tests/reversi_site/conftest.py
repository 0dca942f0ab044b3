"""The command line as others see it: as a process of its own, or inside this one on the test's database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reversi_site.cli import main
from tests.postgres import REPOSITORY

Process = subprocess.CompletedProcess[str]


@dataclass(frozen=True, slots=True)
class Shell:
    """Runs `reversi` in a folder of its own, with nothing of the caller's settings."""

    folder: Path

    def env(self, **extra: str) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        return kept | {"PYTHONPATH": str(REPOSITORY)} | extra

    def run(self, *args: str | bytes, **env: str) -> Process:
        command = [sys.executable, "-m", "reversi_site.cli", *args]
        return subprocess.run(
            command, cwd=self.folder, env=self.env(**env), capture_output=True, text=True, timeout=100, check=False
        )

    def start(self, *args: str, **env: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "reversi_site.cli", *args]
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.env(**env),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def names(self) -> list[str]:
        """Everything below the folder, to see that nothing was written."""
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*"))


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@dataclass(frozen=True, slots=True)
class Answer:
    """What one command did."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def document(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def reversi(capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """Run a command inside this process, on the test's database."""

    def run(*args: str) -> Answer:
        capsys.readouterr()
        code = main(list(args))
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return run
