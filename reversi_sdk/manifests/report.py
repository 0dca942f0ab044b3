"""What is wrong with a manifest, all of it at once and in the order of the document."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from reversi_sdk.canonical import Path

# Looking for the nearest name costs time, and a hostile document may hold a hundred thousand wrong ones.
_MAX_HINTS: Final = 50
_MAX_HINTED_LENGTH: Final = 40


@dataclass(frozen=True, slots=True)
class ManifestProblem:
    """One thing that is wrong, and its place; `code` for the contract checks of D4."""

    path: Path
    message: str
    code: str | None = None


@dataclass(slots=True)
class Report:
    """Collects the problems of one manifest."""

    problems: list[ManifestProblem] = field(default_factory=list)
    _hints: int = 0

    def add(self, path: Path, message: str, code: str | None = None) -> None:
        """Note one problem."""
        self.problems.append(ManifestProblem(path, message, code))

    def is_spoiled(self, path: Path) -> bool:
        """Whether something at a place or below it is already noted, so that what it lacks cannot be judged."""
        return any(problem.path[: len(path)] == path for problem in self.problems)

    def hint(self, word: Any, known: Collection[str]) -> str:
        """Name the known word nearest to a wrong one, or nothing."""
        if not isinstance(word, str) or len(word) > _MAX_HINTED_LENGTH or self._hints >= _MAX_HINTS:
            return ""
        self._hints += 1
        near = difflib.get_close_matches(word, known, n=1)
        return f"; did you mean {near[0]}?" if near else ""


def in_document_order(problems: Iterable[ManifestProblem], data: Any) -> list[ManifestProblem]:
    """Sort by where the document writes each place; what is absent comes last in the object that lacks it."""
    indices: dict[int, dict[Any, int]] = {}
    return sorted(problems, key=lambda problem: _position(problem.path, data, indices))


def _position(path: Path, data: Any, indices: dict[int, dict[Any, int]]) -> tuple[int, ...]:
    position: list[int] = []
    for part in path:
        if isinstance(data, dict):
            # Built once per object: a document may have a hundred thousand problems in one.
            if id(data) not in indices:
                indices[id(data)] = {key: number for number, key in enumerate(data)}
            position.append(indices[id(data)].get(part, len(data)))
            data = data.get(part)
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            position.append(part)
            data = data[part]
    return tuple(position)
