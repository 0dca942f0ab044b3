"""Moves a file or a directory to a free name, and back.

The destination is never replaced (see `renaming`). A file is recognised by content and mode, a directory by kind and
mode alone: what others put into a moved directory goes back with it.
"""

from __future__ import annotations

from connectors.core.files.confinement import ConfinedRoot, Place
from connectors.core.files.errors import in_doubt, shown
from connectors.core.files.flushing import flush_directory
from connectors.core.files.placing import require_unchanged
from connectors.core.files.renaming import Name, rename_no_replace
from connectors.core.files.standing import changed_since, look_in, require_kind, require_parent
from connectors.core.files.state import FileState, Identity, Kind, Look, look_at, status_of
from connectors.core.outcomes import ToolError

MOVABLE = frozenset({Kind.FILE, Kind.DIRECTORY})


def move_to_free_name(root: ConfinedRoot, source: Place, destination: Place) -> FileState:
    """Move the file or directory at `source`; refuse a name that is taken, the root, and what holds the backups."""
    seen = look_in(source)
    require_kind(source, seen, MOVABLE)
    if source.is_root:
        raise ToolError("the root itself cannot be moved")
    if root.holds_reserved(source.parts):
        raise ToolError(f"{shown(source.path)}: the backup directory lies in it and must stay where it is")
    if look_in(destination, is_hashed=False).state.exists:
        raise _taken(destination)
    require_parent(destination)
    return move(source, destination, seen)


def _taken(destination: Place) -> ToolError:
    return ToolError(f"{shown(destination.path)}: the name is taken; nothing was moved")


def move(source: Place, destination: Place, seen: Look) -> FileState:
    """Rename `source`, where `seen` must still stand, to the free name `destination`; return what was moved."""
    if destination.parts[: len(source.parts)] == source.parts and destination.parts != source.parts:
        raise ToolError(f"{shown(destination.path)}: a directory cannot be moved into itself")
    if seen.state.kind is Kind.FILE:
        require_unchanged(source, seen.identity)
    try:
        rename_no_replace(Name(source.parent, source.name), Name(destination.parent, destination.name))
    except FileExistsError:
        raise _taken(destination) from None
    with in_doubt(source.path):
        flush_directory(destination.parent)
        flush_directory(source.parent)
        return _state_moved(destination, seen)


def _state_moved(destination: Place, seen: Look) -> FileState:
    """Return the state that was moved, taken anew if the thing was swapped in the last instant."""
    status = status_of(destination.parent, destination.name)
    if status is not None and seen.identity is not None and Identity.of(status).has_same_content(seen.identity):
        return seen.state
    return look_at(destination.parent, destination.name).state


def move_back(source: Place, destination: Place, moved: FileState, *, is_overwrite_allowed: bool) -> bool:
    """Move what a call moved from `source` to `destination` back; return false when it is back already.

    Nothing at `source` is ever replaced, and what was changed since is never moved, whatever is allowed: the old state
    would not be back, and nobody could say that the move is undone.
    """
    here, there = look_in(source), look_in(destination)
    if here.state == moved and not there.state.exists:
        return False
    if here.state.exists:
        raise _refusal(f"{shown(source.path)} is taken by something else", is_overwrite_allowed)
    if there.state != moved:
        found = "is no longer what was moved there" if there.state.exists else "no longer exists"
        raise _refusal(f"{shown(destination.path)} {found}", is_overwrite_allowed)
    require_kind(destination, there, MOVABLE)
    if not source.has_parent:
        raise ToolError(f"{shown(source.path)}: the directory it was in no longer exists")
    move(destination, source, there)
    return True


def _refusal(reason: str, is_overwrite_allowed: bool) -> ToolError:
    # Where overwriting is allowed already, nobody is to be told that it would help.
    return ToolError(reason) if is_overwrite_allowed else changed_since(reason)
