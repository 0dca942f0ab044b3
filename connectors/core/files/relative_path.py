"""The form of a path that a caller may name, judged before the file system is looked at.

Relative, no `..`, no NUL, text that UTF-8 can hold, and none of the names that the connector keeps for itself.
"""

from __future__ import annotations

from connectors.core.files.errors import shown
from connectors.core.outcomes import ToolError

DEFAULT_BACKUP_NAME = ".reversi-backups"
TEMPORARY_PREFIX = ".reversi-tmp-"
LONGEST_PATH = 4096
MOST_PARTS = 256


def parse_relative(path: str) -> tuple[str, ...]:
    """Split a caller's path into its parts; the empty tuple is the root."""
    problem = _form_problem(path)
    if problem is not None:
        raise ToolError(f"{shown(path)}: {problem}")
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts:
        raise ToolError(f"{shown(path)}: a path must not contain ..")
    if len(parts) > MOST_PARTS:
        raise ToolError(f"{shown(path)}: the path has more than {MOST_PARTS} parts")
    return parts


def _form_problem(path: str) -> str | None:
    if not path:
        return "the path is empty"
    if "\0" in path:
        return "a path must not contain a NUL character"
    if path.startswith("/"):
        return "absolute paths are refused: a path is relative to the root"
    if not is_text(path):
        return "the path is not valid text"
    return f"the path is longer than {LONGEST_PATH} bytes" if len(path.encode()) > LONGEST_PATH else None


def is_text(name: str) -> bool:
    """Whether a name can be written in UTF-8, and so can be asked for again."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def has_reserved_name(parts: tuple[str, ...]) -> bool:
    """Whether a path is the default backup directory, a temporary file, or inside one."""
    return parts[:1] == (DEFAULT_BACKUP_NAME,) or any(part.startswith(TEMPORARY_PREFIX) for part in parts)
