"""What stands in the repository's files, and what must not."""

from __future__ import annotations

import ast
import re

import pytest

from tests.architecture.tracked import is_test, python_files, read, tracked_files
from tests.postgres import REPOSITORY

# The brackets keep this file from holding what it forbids.
FORBIDDEN = {
    "a path of one machine": re.compile(r"(?<![\w.])/(?:[r]oot|[h]ome/\w+|[U]sers/\w+)/"),
    "where packages come from": re.compile(r"[i]ndex-url|[f]ind-links|[t]rusted-host"),
    "work left undone": re.compile(r"\b(?:[T]ODO|[F]IXME)\b"),
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_files_hold_nothing_that_belongs_elsewhere(what: str) -> None:
    found = [
        f"{path}:{number}: {line.strip()}"
        for path in tracked_files()
        for number, line in enumerate((read(path) or "").splitlines(), start=1)
        if FORBIDDEN[what].search(line)
    ]

    assert found == []


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("a path of one machine", f"see /{'home'}/somebody/notes"),
        ("where packages come from", f"--{'index'}-url https://example.org"),
        ("work left undone", f"# {'TO'}DO: later"),
    ],
)
def test_forbidden_texts_are_noticed(what: str, line: str) -> None:
    assert FORBIDDEN[what].search(line)


def test_modules_say_what_they_are_for() -> None:
    silent = [
        str(path) for path in python_files() if not is_test(path) and not ast.get_docstring(ast.parse(read(path) or ""))
    ]

    assert silent == []


def test_requirements_are_pinned_with_hashes() -> None:
    for name in ("requirements.txt", "requirements-dev.txt"):
        text = (REPOSITORY / name).read_text(encoding="utf-8")
        entries = re.split(r"\n(?=\S)", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE).strip())

        assert [entry for entry in entries if not re.match(r"[\w.-]+==\S+ .*--hash=sha256:", entry, re.DOTALL)] == []
