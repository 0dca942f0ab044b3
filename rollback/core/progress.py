"""What is told while a rollback runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is, and what became of the step it just left; `word` is the step's state or why it was left."""

    done: int
    total: int
    step: int
    tool: str
    word: str


OnProgress = Callable[[Progress], None]


def stay_silent(progress: Progress) -> None:
    """Tell nobody."""
