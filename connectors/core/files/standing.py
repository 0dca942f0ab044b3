"""What must stand at a place before a tool acts on it."""

from __future__ import annotations

import os
from collections.abc import Set

from connectors.core.files.confinement import Place
from connectors.core.files.errors import shown
from connectors.core.files.state import ABSENT, Kind, Look, look_at
from connectors.core.outcomes import ToolError

NAMES = {
    Kind.FILE: "a file",
    Kind.DIRECTORY: "a directory",
    Kind.SYMLINK: "a symbolic link",
    Kind.OTHER: "a special file (a pipe, a socket or a device)",
}


def look_in(place: Place, *, is_hashed: bool = True) -> Look:
    """Take the state at a place, which is absence where its directory does not exist."""
    return look_at(place.parent, place.name, is_hashed=is_hashed) if place.has_parent else Look(ABSENT)


def require_kind(place: Place, seen: Look, kinds: Set[Kind]) -> None:
    """Refuse what does not exist or is of another kind."""
    kind = seen.state.kind
    if kind is None:
        raise ToolError(f"{shown(place.path)}: it does not exist")
    if kind not in kinds:
        wanted = " or ".join(NAMES[wanted] for wanted in Kind if wanted in kinds)
        raise ToolError(f"{shown(place.path)}: it is {NAMES[kind]}, not {wanted}")


def require_parent(place: Place) -> None:
    """Refuse a place whose directory does not exist."""
    if place.is_below_file:
        raise ToolError(f"{shown(place.path)}: something on the way to it is not a directory")
    if place.missing:
        raise ToolError(
            f"{shown(place.path)}: the directory {shown(place.parent_path)} does not exist; make it with fs.make_dir"
        )


def require_writable(place: Place) -> None:
    """Refuse a file that is protected against writing: a rename over it would not ask."""
    if not os.access(place.name, os.W_OK, dir_fd=place.parent):
        raise ToolError(f"{shown(place.path)}: the file is protected against writing")


def changed_since(what: str) -> ToolError:
    """Word the refusal to undo over newer work."""
    return ToolError(f"changed since: {what}")
