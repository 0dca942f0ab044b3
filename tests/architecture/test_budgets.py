"""How long files and functions may be; beyond that they have more than one reason to change."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.tracked import is_test, python_files, read

FILE_LINES = 500
TEST_FILE_LINES = 800
CONNECTOR_LINES = 350
COMMAND_LINES = 80
FUNCTION_LINES = 50


# What makes a function a command of the command line.
COMMAND = re.compile(r"^@\w+\.command\(", re.MULTILINE)


def allowed_lines(path: Path) -> int:
    match path.parts:
        case ("tests", *_):
            return TEST_FILE_LINES
        case ("connectors", "catalog", *_):
            return CONNECTOR_LINES
        case ("reversi_site", "cli", "commands", _):
            return COMMAND_LINES * max(1, len(COMMAND.findall(read(path) or "")))
        case _:
            return FILE_LINES


def long_functions(source: str) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES:
                yield node.name, length


def test_files_have_one_reason_to_change() -> None:
    lengths = {path: len((read(path) or "").splitlines()) for path in python_files()}

    assert {str(path): lines for path, lines in lengths.items() if lines > allowed_lines(path)} == {}


def test_functions_fit_on_a_screen() -> None:
    found = {
        f"{path}:{name}": length
        for path in python_files()
        if not is_test(path)
        for name, length in long_functions(read(path) or "")
    }

    assert found == {}


def test_long_functions_are_noticed() -> None:
    body = "\n".join("    x = 1" for _ in range(FUNCTION_LINES))

    assert list(long_functions(f"def f():\n{body}\n")) == [("f", FUNCTION_LINES + 1)]
