"""A directory tree as a value: what every path below a root is, holds and allows."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

from connectors.core.connector import Connector

BACKUPS = ".reversi-backups"
Tree = dict[str, tuple[str, str, str]]


def tree_of(root: Path, *, is_with_backups: bool = False) -> Tree:
    """Describe everything below `root`: kind, mode, and content hash or link target."""
    found: Tree = {}
    for folder, names, files in os.walk(root):
        if not is_with_backups and Path(folder) == root:
            names[:] = [name for name in names if name != BACKUPS]
        for name in (*names, *files):
            path = Path(folder, name)
            found[str(path.relative_to(root))] = describe(path)
    return found


def describe(path: Path) -> tuple[str, str, str]:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return "symlink", "", str(path.readlink())
    mode = f"{stat.S_IMODE(status.st_mode):04o}"
    if stat.S_ISREG(status.st_mode):
        return "file", mode, hashlib.sha256(path.read_bytes()).hexdigest()
    return ("directory" if stat.S_ISDIR(status.st_mode) else "other"), mode, ""


def undo_arguments(connector: Connector, tool: str, result: dict[str, object]) -> tuple[str, dict[str, object]]:
    """Build the undo call of a step the way a rollback does: from the manifest's map over the result."""
    undo = connector.tools[tool].undo
    assert undo is not None
    prefix = "$result."
    mapped = {name: result[str(source).removeprefix(prefix)] for name, source in undo.argument_map.items()}
    return undo.tool, mapped


def reads_back(connector: Connector, tool: str, result: dict[str, object]) -> bool:
    """Run the read-back that the manifest declares and say whether it shows what it must."""
    undo = connector.tools[tool].undo
    assert undo is not None
    assert undo.verification is not None
    path = result[str(undo.verification.arguments["path"]).removeprefix("$result.")]
    answer = connector.call(undo.verification.tool, {"path": path})
    return all(answer[name] == _named(result, str(value)) for name, value in undo.verification.expect.items())


def _named(result: dict[str, object], reference: str) -> object:
    value: object = result
    for part in reference.removeprefix("$result.").split("."):
        assert isinstance(value, dict)
        value = value[part]
    return value
