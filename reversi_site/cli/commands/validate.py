"""`reversi validate`: check manifest files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reversi_site.cli.output import counted, emit_json, emit_lines
from reversi_site.cli.parameters import json_option

if TYPE_CHECKING:
    from reversi_sdk.manifest_files import Problem


@click.command(short_help="Check manifest files.")
@click.argument("path", type=click.Path(path_type=Path))
@json_option
def validate(*, path: Path, is_json: bool) -> int:
    """Check a manifest file, or a folder of them, with every rule at once. Needs no store.

    \b
    Examples:
      reversi validate manifests
      reversi validate manifests/payments.yaml --json
    """
    from manifests_registry.core.validation import problem_line, validate_path

    validation = validate_path(path)
    is_valid = not validation.problems
    if is_json:
        errors = [_document(problem) for problem in validation.problems]
        emit_json({"ok": is_valid, "manifests": validation.count, "errors": errors})
    elif is_valid:
        emit_lines([f"ok: {validation.count} tool manifests valid"])
    else:
        lines = [problem_line(problem) for problem in validation.problems]
        emit_lines([*lines, counted(len(lines), "error")])
    return 0 if is_valid else 1


def _document(problem: Problem) -> dict[str, Any]:
    return {
        "file": problem.file,
        "line": problem.line,
        "column": problem.column,
        "tool": problem.tool,
        "path": problem.path,
        "message": problem.message,
        "code": problem.code,
    }
