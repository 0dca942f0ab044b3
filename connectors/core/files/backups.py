"""Keeps what a call replaces or deletes, under an id, so that it can be put back.

Beside the kept file `<id>` stands `<id>.json`: the path it came from, its SHA-256, its mode, when and why it was kept.
Order of events: before an overwrite the copy and its note are complete and flushed; before a deletion the note is,
and then the file itself moves in. So a crash loses nothing. After a crash between backup and overwrite the file is
as it was and an extra copy is left. After a crash in a deletion either the file stands where it was and
a note without its file is left, or the file is in the backup directory. That is how a person settles a deletion whose
answer was lost: the note with the file's `path` and the latest `at` names the id, and with its `sha256` and `mode` all
that `fs.restore_file` needs.

Kept files are never removed by a rollback; pruning the directory is the operator's decision.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from connectors.core.files.confinement import DIRECTORY_FLAGS, ConfinedRoot, Place
from connectors.core.files.errors import in_doubt, plain_words, shown
from connectors.core.files.flushing import flush_directory
from connectors.core.files.placing import (
    CREATE_FLAGS,
    PRIVATE_MODE,
    Attributes,
    apply_attributes,
    remove_file,
    write_all,
)
from connectors.core.files.renaming import Name, rename_no_replace
from connectors.core.files.state import FileState, Identity, Kind, Look, chunks_of, look_at, open_regular, status_of
from connectors.core.outcomes import ToolError

DIRECTORY_MODE = 0o700
BACKUP_ID = "[0-9a-f]{32}"


@dataclass(frozen=True, slots=True)
class Kept:
    """A kept file: its id and the state it had."""

    id: str
    state: FileState


@dataclass(frozen=True, slots=True)
class Backups:
    """The backup directory of a root; ids and times come from outside."""

    root: ConfinedRoot
    new_id: Callable[[], str]
    now: Callable[[], datetime]

    def keep_copy(self, place: Place, seen: Look, *, reason: str) -> Kept:
        """Copy the file at `place` with its mode, flushed to the disk before this returns."""
        kept = Kept(self.new_id(), seen.state)
        with (
            self._directory() as directory,
            _new_file(directory, kept.id) as copy,
            _new_file(directory, _note_name(kept.id)) as note,
        ):
            _copy(copy, place, seen)
            self._write_note(note, kept, place, reason)
            flush_directory(directory)
        return kept

    def take(self, place: Place, seen: Look) -> Kept:
        """Move the file at `place` into the backup directory; on another file system copy it, then remove it."""
        kept = Kept(self.new_id(), seen.state)
        with self._directory() as directory:
            try:
                with _new_file(directory, _note_name(kept.id)) as note:
                    self._write_note(note, kept, place, "delete")
                    flush_directory(directory)
                    rename_no_replace(Name(place.parent, place.name), Name(directory, kept.id))
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                return self._copy_then_remove(place, seen)
            with in_doubt(place.path):
                return self._settle(directory, kept, place, seen)

    def _settle(self, directory: int, kept: Kept, place: Place, seen: Look) -> Kept:
        """Flush a deletion; if the file was changed after it was looked at, tell what was really moved."""
        flush_directory(directory)
        flush_directory(place.parent)
        status = os.stat(kept.id, dir_fd=directory, follow_symlinks=False)
        if seen.identity is not None and Identity.of(status).has_same_content(seen.identity):
            return kept
        moved = look_at(directory, kept.id)
        if moved.state.kind is not Kind.FILE:
            rename_no_replace(Name(directory, kept.id), Name(place.parent, place.name))
            _discard(directory, kept.id)
            raise ToolError(f"{shown(place.path)}: it was swapped for something else meanwhile; that was put back")
        settled = Kept(kept.id, moved.state)
        os.unlink(_note_name(kept.id), dir_fd=directory)
        with _new_file(directory, _note_name(kept.id)) as note:
            self._write_note(note, settled, place, "delete")
        return settled

    def _copy_then_remove(self, place: Place, seen: Look) -> Kept:
        kept = self.keep_copy(place, seen, reason="delete")
        remove_file(place, seen)
        return kept

    def discard(self, kept: Kept) -> None:
        """Remove a copy that turned out not to be needed, because nothing was changed."""
        with self._directory() as directory:
            _discard(directory, kept.id)

    @contextmanager
    def open_kept(self, backup_id: str) -> Iterator[int]:
        """Open a kept file for reading."""
        with self._directory() as directory:
            if status_of(directory, backup_id) is None:
                raise ToolError(f"the backup {backup_id} is gone from the backup directory")
            with open_regular(directory, backup_id) as descriptor:
                yield descriptor

    def _write_note(self, descriptor: int, kept: Kept, place: Place, reason: str) -> None:
        note = {
            "path": place.path,
            "sha256": kept.state.sha256,
            "mode": kept.state.mode,
            "at": self.now().isoformat(),
            "reason": reason,
        }
        write_all(descriptor, [json.dumps(note, sort_keys=True).encode() + b"\n"])
        os.fsync(descriptor)

    @contextmanager
    def _directory(self) -> Iterator[int]:
        """Open the backup directory, making it when it is not there yet."""
        try:
            descriptor = self._open()
        except OSError as error:
            raise ToolError(f"the backup directory cannot be used: {plain_words(error)}") from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _open(self) -> int:
        parts = self.root.reserved_parts
        top: Path = self.root.path if parts else self.root.reserved.parent
        descriptor = os.open(top, DIRECTORY_FLAGS)
        for part in parts or (self.root.reserved.name,):
            try:
                below = _open_or_make(descriptor, part)
            finally:
                os.close(descriptor)
            descriptor = below
        return descriptor


def _open_or_make(parent: int, name: str) -> int:
    with suppress(FileExistsError):
        os.mkdir(name, DIRECTORY_MODE, dir_fd=parent)
        flush_directory(parent)
    return os.open(name, DIRECTORY_FLAGS, dir_fd=parent)


def _copy(copy: int, place: Place, seen: Look) -> None:
    with open_regular(place.parent, place.name) as original:
        digest = write_all(copy, chunks_of(original))
        status = os.fstat(original)
    if Identity.of(status) != seen.identity or digest != seen.state.sha256:
        raise ToolError(f"{shown(place.path)}: it was changed by somebody else meanwhile; nothing was changed")
    apply_attributes(copy, Attributes.of(status))
    os.fsync(copy)


@contextmanager
def _new_file(directory: int, name: str) -> Iterator[int]:
    """Make a file that nobody has made before, and remove it again when the work on it fails."""
    descriptor = os.open(name, CREATE_FLAGS, PRIVATE_MODE, dir_fd=directory)
    try:
        yield descriptor
    except Exception:
        with suppress(OSError):
            os.unlink(name, dir_fd=directory)
        raise
    finally:
        os.close(descriptor)


def _note_name(backup_id: str) -> str:
    return f"{backup_id}.json"


def _discard(directory: int, backup_id: str) -> None:
    for name in (_note_name(backup_id), backup_id):
        with suppress(OSError):
            os.unlink(name, dir_fd=directory)
