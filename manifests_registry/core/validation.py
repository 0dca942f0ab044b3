"""Check manifest files with every rule at once: each by itself, then all of them together. Needs no store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from manifests_registry.core.snapshot import Entry, Snapshot, SnapshotProblem, build_snapshot
from reversi_sdk.manifest_files import Problem, load_manifests


@dataclass(frozen=True, slots=True)
class LoadedPath:
    """The manifests in a file or folder that are valid by themselves, and what is wrong with the others."""

    entries: tuple[Entry, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Validation:
    """How many manifests were found valid, and everything that is wrong."""

    count: int
    problems: tuple[Problem, ...]


def load_path(path: Path) -> LoadedPath:
    """Read a manifest file, or a folder of them."""
    loaded = load_manifests(path)
    entries = (Entry(each.manifest, each.normalized, each.checksum, each.source) for each in loaded.manifests)
    return LoadedPath(tuple(entries), tuple(loaded.problems))


def judge(loaded: Sequence[LoadedPath]) -> tuple[Snapshot, tuple[Problem, ...]]:
    """Put the manifests of several paths together, with everything that is wrong with each and with all."""
    alone = [problem for each in loaded for problem in each.problems]
    malformed = {problem.tool for problem in alone if problem.tool is not None}
    snapshot, together = build_snapshot((entry for each in loaded for entry in each.entries), malformed=malformed)
    return snapshot, (*alone, *map(as_problem, together))


def validate_path(path: Path) -> Validation:
    """Check a manifest file, or a folder of them."""
    loaded = load_path(path)
    return Validation(len(loaded.entries), judge([loaded])[1])


def as_problem(found: SnapshotProblem) -> Problem:
    """Return a problem of the manifests together in the form of those of a file."""
    file, _, line = found.source.rpartition(":")
    return Problem(
        file=file,
        line=int(line),
        column=1,
        tool=found.tool,
        path=found.path,
        message=found.message,
        code=found.code,
    )


def problem_line(problem: Problem) -> str:
    """Write a problem on one line, place first."""
    about = " ".join(part for part in (problem.tool, problem.path) if part)
    message = f"{about}: {problem.message}" if about else problem.message
    return f"{problem.file}:{problem.line}:{problem.column}: {message}"
