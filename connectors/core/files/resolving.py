"""Looks at a path that another program was given, and takes back a file that it made there."""

from __future__ import annotations

from typing import Any

from connectors.core.files.absolute_path import below
from connectors.core.files.backups import Backups
from connectors.core.files.confinement import ConfinedRoot
from connectors.core.files.directories import missing_directories
from connectors.core.files.errors import shown
from connectors.core.files.standing import NAMES, look_in
from connectors.core.files.state import Kind
from connectors.core.outcomes import ToolError


def resolve_path(root: ConfinedRoot, path: str) -> dict[str, Any]:
    """Say where an absolute path leads below the root, what stands there, and what making it would make."""
    with root.locate(below(root, path), is_last_followed=True) as place:
        state = look_in(place).state
        missing = () if state.exists or place.is_below_file else missing_directories(place)
    return {"path": place.path, **state.to_data(), "missing": list(missing)}


def take_away(root: ConfinedRoot, backups: Backups, path: str) -> dict[str, Any]:
    """Move the file at an absolute path into the backups; where nothing stands there is nothing left to do."""
    with root.locate(below(root, path), is_last_followed=False) as place:
        seen = look_in(place)
        if seen.state.exists and seen.state.kind is not Kind.FILE:
            kind = NAMES[seen.state.kind] if seen.state.kind else "something"
            raise ToolError(f"{shown(place.path)}: it is {kind} by now, not the file that was made")
        kept = backups.take(place, seen) if seen.state.exists else None
    return {"path": place.path, "backup": kept.id if kept else None, "already_removed": kept is None}
