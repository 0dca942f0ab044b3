"""The files of the repository, as git knows them: what others have lying about is no part of the project."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from tests.postgres import REPOSITORY


@cache
def tracked_files() -> tuple[Path, ...]:
    """Return the tracked files that exist, relative to the repository."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    paths = [Path(name) for name in listed.stdout.split("\0") if name]
    return tuple(path for path in paths if (REPOSITORY / path).is_file())


def python_files() -> tuple[Path, ...]:
    """Return the tracked Python files that people write: all but migrations."""
    return tuple(path for path in tracked_files() if path.suffix == ".py" and "migrations" not in path.parts)


def is_test(path: Path) -> bool:
    """Tell whether the file belongs to the test suite."""
    return path.parts[0] == "tests"


def read(path: Path) -> str | None:
    """Return the file's text, or None when it is not text."""
    try:
        return (REPOSITORY / path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None
