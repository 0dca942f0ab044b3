"""Tells the demonstration to a person, and keeps the score of what was expected and what was so."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

WIDTH = 80
STAYS = "stays behind: "
Emit = Callable[[Iterable[str]], None]


@dataclass(frozen=True, slots=True)
class Expectation:
    """One fact that had to hold, and what was seen where it did not."""

    fact: str
    is_met: bool
    seen: str = ""


@dataclass(slots=True)
class Narrator:
    """Says each thing once; `emit` prints lines."""

    emit: Emit
    expectations: list[Expectation] = field(default_factory=list)

    def title(self, text: str) -> None:
        """Begin a part."""
        self.emit(["", text, "=" * len(text)])

    def say(self, text: str) -> None:
        """Say a paragraph."""
        # A path must stay in one piece: it is there to be copied.
        self.emit(["", *textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)])

    def show(self, lines: Iterable[str]) -> None:
        """Show what a command would print."""
        self.emit(["", *(f"    {line}" for line in lines)])

    def show_briefly(self, lines: Iterable[str]) -> None:
        """Show what a command would print, what stays behind once only: a dozen undos leave the same things."""
        told: set[str] = set()
        kept = []
        for line in lines:
            if line.strip() not in told:
                kept.append(line)
            if line.strip().startswith(STAYS):
                told.add(line.strip())
        self.show(kept)

    def expect(self, fact: str, is_met: bool, seen: object = "") -> None:
        """Check a fact and say whether it holds."""
        expectation = Expectation(fact, is_met, "" if is_met else str(seen))
        self.expectations.append(expectation)
        ending = f" (seen: {expectation.seen})" if expectation.seen else ""
        self.emit([f"  {'[ok]' if is_met else '[NOT SO]'} {fact}{ending}"])

    @property
    def is_content(self) -> bool:
        """Whether everything that was expected was so, and anything was."""
        return bool(self.expectations) and all(each.is_met for each in self.expectations)
