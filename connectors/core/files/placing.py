"""Puts content at a name in one step: a temporary file beside it, flushed, then renamed over it.

Readers see the old content or the new, never a part. On any failure the name is as it was and the temporary file is
gone; after a crash a temporary file may be left, under a name that no tool shows or accepts. The name is looked at
once more just before the rename, and a thing that changed since the caller looked is left alone; a change in the
instant between that look and the rename is replaced unseen.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from connectors.core.files.confinement import Place
from connectors.core.files.errors import in_doubt, shown
from connectors.core.files.flushing import flush_directory
from connectors.core.files.relative_path import TEMPORARY_PREFIX
from connectors.core.files.renaming import Name, rename_no_replace
from connectors.core.files.state import FileState, Identity, Kind, Look, mode_text, status_of
from connectors.core.outcomes import ToolError

CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
PRIVATE_MODE = 0o600
NEW_FILE_MODE = 0o666


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a file keeps besides its content; a time or an owner of none is the system's choice."""

    mode: int | None = None
    owner: tuple[int, int] | None = None
    times_ns: tuple[int, int] | None = None

    @classmethod
    def of(cls, status: os.stat_result) -> Attributes:
        """Take everything from a status."""
        return cls(status.st_mode & 0o7777, (status.st_uid, status.st_gid), (status.st_atime_ns, status.st_mtime_ns))

    def without_times(self) -> Attributes:
        """Return the same for a file whose content is new."""
        return Attributes(self.mode, self.owner)


def put_content(
    place: Place, chunks: Iterable[bytes], *, seen: Look, attributes: Attributes, token: str, sha256: str | None = None
) -> FileState:
    """Put `chunks` at `place`, where `seen` must still stand, and return the new state.

    `sha256`, when given, is what the content must hash to, or nothing is changed.
    """
    with temporary_file(place.parent, token, is_private=attributes.mode is not None) as (name, descriptor):
        digest = write_all(descriptor, chunks)
        if sha256 not in (None, digest):
            raise ToolError(f"{shown(place.path)}: what was kept of it no longer has the content that was kept")
        apply_attributes(descriptor, attributes)
        os.fsync(descriptor)
        state = FileState(True, Kind.FILE, digest, mode_text(os.fstat(descriptor).st_mode))
        require_unchanged(place, seen.identity)
        _install(Name(place.parent, name), place, is_new=seen.identity is None)
    with in_doubt(place.path):
        flush_directory(place.parent)
    return state


def _install(temporary: Name, place: Place, *, is_new: bool) -> None:
    if not is_new:
        os.rename(temporary.name, place.name, src_dir_fd=temporary.parent, dst_dir_fd=place.parent)
        return
    try:
        rename_no_replace(temporary, Name(place.parent, place.name))
    except FileExistsError:
        raise ToolError(f"{shown(place.path)}: somebody else made it meanwhile; nothing was changed") from None


@contextmanager
def temporary_file(parent: int, token: str, *, is_private: bool) -> Iterator[tuple[str, int]]:
    """Make a temporary file, give its name and descriptor, and remove it unless it was renamed away."""
    name = f"{TEMPORARY_PREFIX}{token}"
    descriptor = os.open(name, CREATE_FLAGS, PRIVATE_MODE if is_private else NEW_FILE_MODE, dir_fd=parent)
    try:
        yield name, descriptor
    finally:
        os.close(descriptor)
        # A clean-up that fails must not hide why the work failed.
        with suppress(OSError):
            os.unlink(name, dir_fd=parent)


def write_all(descriptor: int, chunks: Iterable[bytes]) -> str:
    """Write everything and return its SHA-256."""
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
        rest = memoryview(chunk)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    return digest.hexdigest()


def apply_attributes(descriptor: int, attributes: Attributes) -> None:
    """Set owner, mode and times; a different owner is kept only where the system allows it."""
    if attributes.owner is not None:
        with suppress(PermissionError):
            os.fchown(descriptor, *attributes.owner)
    if attributes.mode is not None:
        # After the owner: changing the owner clears the set-user-id bits.
        os.fchmod(descriptor, attributes.mode)
    if attributes.times_ns is not None:
        os.utime(descriptor, ns=attributes.times_ns)


def require_unchanged(place: Place, identity: Identity | None) -> None:
    """Raise `ToolError` when something else stands at the place than what was looked at."""
    status = status_of(place.parent, place.name)
    now = Identity.of(status) if status else None
    if now != identity:
        raise ToolError(f"{shown(place.path)}: it was changed by somebody else meanwhile; nothing was changed")


def remove_file(place: Place, seen: Look) -> None:
    """Remove the file at `place`, where `seen` must still stand."""
    require_unchanged(place, seen.identity)
    os.unlink(place.name, dir_fd=place.parent)
    with in_doubt(place.path):
        flush_directory(place.parent)
