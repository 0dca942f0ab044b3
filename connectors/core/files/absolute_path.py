"""An absolute path, as another program on this machine spells it, taken as a path below the root.

Absolute only: what a relative path or a `~` means is known to the program that was given it and to nobody else, and a
guess that falls beside the file would show it as gone already. The root may be spelled through links; `..` is refused,
since programs do not agree on whether it goes up before or after a link.
"""

from __future__ import annotations

import os
from pathlib import Path

from connectors.core.files.confinement import ConfinedRoot
from connectors.core.files.errors import definite, shown
from connectors.core.outcomes import ToolError


def below(root: ConfinedRoot, path: str) -> str:
    """Return the path relative to the root; raises `ToolError` for one that is not absolute or lies elsewhere."""
    if not path.startswith("/"):
        raise ToolError(f"{shown(path)}: the path must be absolute, since what it is relative to is not known here")
    if "\0" in path:
        raise ToolError(f"{shown(path)}: a path must not contain a NUL character")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise ToolError(f"{shown(path)}: a path must not contain ..")
    with definite(str(root.path)):
        wanted = root.path.stat()
    for length in range(len(parts) + 1):
        if _is_same(Path("/", *parts[:length]), wanted):
            return "/".join(parts[length:]) or "."
    raise ToolError(f"{shown(path)}: the path is not below the root")


def _is_same(path: Path, wanted: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), wanted)
    except (OSError, ValueError):
        return False
