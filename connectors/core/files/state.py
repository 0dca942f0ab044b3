"""What stands at a name: kind, content hash and mode, taken without following a link or blocking on a pipe."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from connectors.core.outcomes import ToolError

CHUNK_BYTES = 1024 * 1024
MOST_LOOKS = 3
READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Kind(StrEnum):
    """What sort of thing a name stands for."""

    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symlink"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class FileState:
    """What a reader can see; `sha256` is given for regular files only, everything is null for what does not exist."""

    exists: bool
    kind: Kind | None = None
    sha256: str | None = None
    mode: str | None = None

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> FileState:
        """Read a state back from arguments; one given without its kind is a file's."""
        if not data["exists"]:
            return ABSENT
        return cls(True, Kind(data.get("kind") or Kind.FILE), data["sha256"], data["mode"])

    def to_data(self) -> dict[str, Any]:
        """Return the state as it stands in results."""
        return {
            "exists": self.exists,
            "kind": self.kind.value if self.kind else None,
            "sha256": self.sha256,
            "mode": self.mode,
        }


ABSENT = FileState(exists=False)


@dataclass(frozen=True, slots=True)
class Identity:
    """Which file, and which content of it, was looked at; any write or change of mode makes another identity."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> Identity:
        """Take the identity from a status."""
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

    def has_same_content(self, other: Identity) -> bool:
        """Whether both are one file with one content, even if it was renamed in between."""
        return (self.device, self.inode, self.size, self.modified_ns) == (
            other.device,
            other.inode,
            other.size,
            other.modified_ns,
        )


@dataclass(frozen=True, slots=True)
class Look:
    """The state of a name together with the status it was taken from (none for what does not exist)."""

    state: FileState
    status: os.stat_result | None = None

    @property
    def identity(self) -> Identity | None:
        """The identity of what was seen, or none for nothing."""
        return Identity.of(self.status) if self.status else None


def kind_of(mode: int) -> Kind:
    """Name the kind of thing that a status mode stands for."""
    if stat.S_ISREG(mode):
        return Kind.FILE
    if stat.S_ISDIR(mode):
        return Kind.DIRECTORY
    return Kind.SYMLINK if stat.S_ISLNK(mode) else Kind.OTHER


def mode_text(mode: int) -> str:
    """Write permission bits as four octal digits."""
    return f"{stat.S_IMODE(mode):04o}"


def status_of(parent: int, name: str) -> os.stat_result | None:
    """Return the status of a name, links not followed, or none when nothing has it."""
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None


def look_at(parent: int, name: str, *, is_hashed: bool = True) -> Look:
    """Take the state of a name; a file that changes while it is hashed is looked at again."""
    for _ in range(MOST_LOOKS):
        status = status_of(parent, name)
        if status is None:
            return Look(ABSENT)
        kind = kind_of(status.st_mode)
        if kind is not Kind.FILE or not is_hashed:
            return Look(FileState(True, kind, None, mode_text(status.st_mode)), status)
        with open_regular(parent, name) as descriptor:
            digest = hashlib.sha256()
            for chunk in chunks_of(descriptor):
                digest.update(chunk)
            after = os.fstat(descriptor)
        if Identity.of(after) == Identity.of(status):
            return Look(FileState(True, kind, digest.hexdigest(), mode_text(after.st_mode)), after)
    raise ToolError(f"{name}: the file keeps changing while it is being read")


@contextmanager
def open_regular(parent: int, name: str) -> Iterator[int]:
    """Open a regular file for reading and nothing else: no link is followed, no pipe waited for."""
    descriptor = os.open(name, READ_FLAGS, dir_fd=parent)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ToolError(f"{name}: not a regular file")
        yield descriptor
    finally:
        os.close(descriptor)


def chunks_of(descriptor: int) -> Iterator[bytes]:
    """Read an open file to its end in pieces of bounded size."""
    while chunk := os.read(descriptor, CHUNK_BYTES):
        yield chunk
