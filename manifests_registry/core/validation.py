"""Check manifest files with every rule at once: each by itself, then all of them together. Needs no store."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from manifests_registry.core.snapshot import Entry, SnapshotProblem, build_snapshot
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


def validate_path(path: Path) -> Validation:
    """Check a manifest file, or a folder of them."""
    loaded = load_path(path)
    # A tool that is missing only because its own manifest is malformed would be told twice.
    together = () if loaded.problems else build_snapshot(loaded.entries)[1]
    problems = (*loaded.problems, *(as_problem(each) for each in together))
    return Validation(len(loaded.entries), problems)


def as_problem(found: SnapshotProblem) -> Problem:
    """Return a problem of the manifests together in the form of those of a file."""
    file, _, line = found.source.rpartition(":")
    is_place = file != "" and line.isdecimal()
    return Problem(
        file=file if is_place else found.source,
        line=int(line) if is_place else None,
        column=None,
        tool=found.tool,
        path=found.path,
        message=found.message,
    )


def problem_line(problem: Problem) -> str:
    """Write a problem on one line, place first."""
    place = ":".join(str(part) for part in (problem.file, problem.line, problem.column) if part is not None)
    about = " ".join(part for part in (problem.tool, problem.path) if part)
    return f"{place}: {about}: {problem.message}" if about else f"{place}: {problem.message}"
