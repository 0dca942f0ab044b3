"""The whole demonstration: both parts, then what to open next."""

from __future__ import annotations

import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from reversi_site.demo.narrator import Narrator
from reversi_site.demo.stage import Stage


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs that the demonstration left in its store."""

    undone: str
    honest: str


def perform(stage: Stage, narrator: Narrator) -> Runs:
    """Play both parts in the store that this process was pointed at."""
    from reversi_site.store import open_store

    open_store()
    from reversi_site.demo import everything_undone, honest_report

    narrator.say(
        "Reversi lets AI agents be undone. What follows happens for real, in a folder made for it: "
        f"{stage.folder}. Each line that begins with [ok] was checked just now."
    )
    runs = Runs(everything_undone.play(stage, narrator), honest_report.play(stage, narrator))
    _close(stage, narrator, runs)
    return runs


def _close(stage: Stage, narrator: Narrator, runs: Runs) -> None:
    met = sum(each.is_met for each in narrator.expectations)
    narrator.title("What to open next")
    reversi = f"{_command()} --data {shlex.quote(str(stage.store))}"
    narrator.show(
        [
            f"{reversi} runs list",
            f"{reversi} runs show {runs.undone}",
            f"{reversi} plan {runs.honest}",
            f"{reversi} ledger verify",
        ]
    )
    narrator.say(
        f"The files are in {stage.sandbox}. README.md explains the words and commands, docs/ the decisions behind "
        "them. Nothing keeps running; the folder can be deleted."
    )
    narrator.emit(["", f"{met} of {len(narrator.expectations)} expectations hold."])


def _command() -> str:
    """Return what a person can type to get at `reversi`, which may not be on the path."""
    if shutil.which("reversi"):
        return "reversi"
    script = Path(sys.argv[0])
    return shlex.quote(str(script)) if script.name == "reversi" else f"{sys.executable} -m reversi_site.cli"
