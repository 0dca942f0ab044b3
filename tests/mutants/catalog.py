"""The faults: each is one small edit that a hurried hand could make, and the tests that must notice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault: `before` stands exactly once in `path` and becomes `after`; `tests` must fail then."""

    name: str
    path: str
    before: str
    after: str
    tests: Sequence[str]


MUTANTS: Sequence[Mutant] = ()
