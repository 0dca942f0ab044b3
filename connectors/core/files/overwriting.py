"""Replaces a file after keeping what it replaces, and puts back exactly what stood before.

Putting back guards newer work: when what stands there now is neither what the call left nor what is to be put back,
somebody else has worked on it since, and only an explicit permission goes over that work, after keeping a copy of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from connectors.core.files.backups import Backups, Kept
from connectors.core.files.confinement import ConfinedRoot, Place
from connectors.core.files.errors import shown
from connectors.core.files.placing import Attributes, put_content, remove_file
from connectors.core.files.standing import NAMES, changed_since, look_in
from connectors.core.files.state import FileState, Kind, Look, chunks_of
from connectors.core.outcomes import ToolError


@dataclass(frozen=True, slots=True)
class Restoration:
    """What a restore is asked for: where, from which backup, to which state, and which state the call had left."""

    path: str
    backup: str | None
    previous: FileState
    left: FileState
    is_overwrite_allowed: bool

    @classmethod
    def from_data(cls, data: Mapping[str, Any], *, is_overwrite_allowed: bool) -> Restoration:
        """Read what is asked for from arguments."""
        return cls(
            path=data["path"],
            backup=data["backup"],
            previous=FileState.from_data(data["previous"]),
            left=FileState.from_data(data["left"]),
            is_overwrite_allowed=is_overwrite_allowed,
        )


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore did; `overwritten` names the copy that was kept of newer work."""

    path: str
    is_already_restored: bool
    overwritten: str | None = None


def replace_content(
    backups: Backups, place: Place, seen: Look, chunks: Iterable[bytes]
) -> tuple[FileState, Kept | None]:
    """Put new content at `place`, keeping a copy of what it replaces and its mode and owner."""
    kept = backups.keep_copy(place, seen, reason="write") if seen.state.exists else None
    attributes = Attributes.of(seen.status).without_times() if seen.status else Attributes()
    try:
        return put_content(place, chunks, seen=seen, attributes=attributes, token=backups.new_id()), kept
    except (ToolError, OSError):
        if kept is not None:
            backups.discard(kept)
        raise


def restore(root: ConfinedRoot, backups: Backups, order: Restoration) -> Restored:
    """Put back the previous state of a file, or its absence; a second time changes nothing."""
    with root.locate(order.path, is_last_followed=False) as place:
        seen = look_in(place)
        if seen.state == order.previous:
            return Restored(place.path, is_already_restored=True)
        overwritten = _guard_newer_work(backups, place, seen, order)
        if order.previous.exists:
            _put_back(backups, place, seen, order)
        else:
            remove_file(place, seen)
        return Restored(place.path, is_already_restored=False, overwritten=overwritten.id if overwritten else None)


def _guard_newer_work(backups: Backups, place: Place, seen: Look, order: Restoration) -> Kept | None:
    """Let a restore pass only over what the call left, or with permission over a file, of which a copy is kept."""
    if seen.state == order.left:
        return None
    if not order.is_overwrite_allowed:
        raise changed_since(f"{shown(place.path)} is neither what the call left nor what stood before it")
    if seen.state.kind is None:
        return None
    if seen.state.kind is not Kind.FILE:
        raise ToolError(f"{shown(place.path)}: {NAMES[seen.state.kind]} stands there now, which is never replaced")
    return backups.keep_copy(place, seen, reason="overwrite")


def _put_back(backups: Backups, place: Place, seen: Look, order: Restoration) -> None:
    previous = order.previous
    if order.backup is None or previous.mode is None or previous.sha256 is None:
        raise ToolError(f"{shown(place.path)}: to put the file back its backup, sha256 and mode are needed")
    if not place.has_parent:
        raise ToolError(f"{shown(place.path)}: the directory it was in no longer exists")
    with backups.open_kept(order.backup) as kept:
        attributes = replace(Attributes.of(os.fstat(kept)), mode=int(previous.mode, 8))
        token = backups.new_id()
        put_content(place, chunks_of(kept), seen=seen, attributes=attributes, token=token, sha256=previous.sha256)
