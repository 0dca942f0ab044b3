"""Walks a caller's path below a root so that nothing outside the root can be reached, whatever others do meanwhile.

Each part is opened from the descriptor of the one before it and never through a link: a link is read, and what it
says is walked from the same descriptors, so a link inside the root works and one that leads outside is refused. A
part swapped for a link between look and use makes the opening fail. The caller gets the descriptor of the parent
directory and acts on one name in it. What cannot be prevented: a directory that someone moves out of the root
after it was opened is still the directory that was opened.

The backup directory and temporary names are refused by name, and the backup directory also by identity, so that no
alias reaches it.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from connectors.core.files.errors import definite, shown
from connectors.core.files.relative_path import (
    DEFAULT_BACKUP_NAME,
    MOST_PARTS,
    has_reserved_name,
    is_text,
    parse_relative,
)
from connectors.core.files.state import Kind, kind_of, status_of
from connectors.core.outcomes import ToolError
from reversi_sdk.errors import InvalidInput

DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
MOST_LINKS = 40


@dataclass(frozen=True, slots=True)
class Place:
    """A name in an opened directory.

    `parts` is the canonical path below the root. `missing` holds the parts that do not exist, from the first of them
    on: empty when something stands here or only the last part is lacking. `is_below_file` says that a part on the way
    is no directory, so nothing can exist here.
    """

    asked: str
    parent: int
    parts: tuple[str, ...]
    missing: tuple[str, ...] = ()
    is_below_file: bool = False

    @property
    def name(self) -> str:
        """The last part, or `.` for the root itself."""
        return self.parts[-1] if self.parts else "."

    @property
    def path(self) -> str:
        """The canonical path below the root; the root is `.`."""
        return "/".join(self.parts) or "."

    @property
    def parent_path(self) -> str:
        """The canonical path of the directory that holds the name."""
        return "/".join(self.parts[:-1]) or "."

    @property
    def is_root(self) -> bool:
        """Whether this is the root itself."""
        return not self.parts

    @property
    def has_parent(self) -> bool:
        """Whether the directory that should hold the name exists."""
        return not self.missing and not self.is_below_file


@dataclass(frozen=True, slots=True)
class ConfinedRoot:
    """The one directory that tools can touch; `reserved` is the backup directory."""

    path: Path
    reserved: Path

    @classmethod
    def at(cls, root: Path, backup_dir: Path | None) -> ConfinedRoot:
        """Confine to `root`; raises `InvalidInput` when it or the backup directory cannot be one."""
        path = _resolved(root)
        if not path.is_dir():
            raise InvalidInput(f"the root {str(root)!r} is not a directory")
        reserved = path / DEFAULT_BACKUP_NAME if backup_dir is None else _resolved(backup_dir)
        if path.is_relative_to(reserved):
            raise InvalidInput(f"the backup directory {str(backup_dir)!r} must not be the root or contain it")
        if not reserved.parent.is_dir():
            raise InvalidInput(f"the backup directory {str(backup_dir)!r} must be in a directory that exists")
        return cls(path, reserved)

    @contextmanager
    def locate(self, path: str, *, is_last_followed: bool) -> Iterator[Place]:
        """Walk to `path` and hold its directory open; a link in the last part is followed only when asked."""
        walk = _Walk(self, path, is_last_followed, deque(parse_relative(path)))
        try:
            with definite(path):
                place = walk.go()
            yield place
        finally:
            walk.close()

    def is_reserved(self, parts: tuple[str, ...]) -> bool:
        """Whether a canonical path belongs to the connector itself."""
        own = self.reserved_parts
        return has_reserved_name(parts) or (bool(own) and parts[: len(own)] == own)

    def holds_reserved(self, parts: tuple[str, ...]) -> bool:
        """Whether the backup directory lies in the directory `parts`, and would move with it."""
        return self.reserved_parts[: len(parts)] == parts

    @property
    def reserved_parts(self) -> tuple[str, ...]:
        """The backup directory's path below the root; empty when it lies elsewhere."""
        return self.reserved.relative_to(self.path).parts if self.reserved.is_relative_to(self.path) else ()

    def is_backup_directory(self, status: os.stat_result) -> bool:
        """Whether a status is the backup directory's, by whatever name it was reached."""
        try:
            reserved = self.reserved.lstat()
        except OSError:
            return False
        return os.path.samestat(status, reserved)


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        raise InvalidInput(f"the directory {str(path)!r} cannot be found") from None


@dataclass(slots=True)
class _Walk:
    """One walk: the directories opened so far, their names, and the parts still ahead."""

    root: ConfinedRoot
    asked: str
    is_last_followed: bool
    ahead: deque[str]
    opened: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    links: int = 0

    def go(self) -> Place:
        self.opened.append(os.open(self.root.path, DIRECTORY_FLAGS))
        while self.ahead:
            place = self._step(self.ahead.popleft())
            if place is not None:
                return place
        # Only a path that is, or a link that leads to, a directory already opened ends here.
        return self._place(self.opened[-2] if self.names else self.opened[-1], tuple(self.names))

    def close(self) -> None:
        for descriptor in self.opened:
            os.close(descriptor)

    def _step(self, name: str) -> Place | None:
        """Take one part; return the place when the walk ends with it."""
        if name in ("", "."):
            return None
        if name == "..":
            self._go_up()
            return None
        status = status_of(self.opened[-1], name)
        if status is None:
            return self._end_missing(name)
        match kind_of(status.st_mode):
            case Kind.SYMLINK:
                return self._take_link(name)
            case Kind.DIRECTORY if self.ahead:
                self._go_down(name)
                return None
            case _:
                return self._end_at(name, status)

    def _go_up(self) -> None:
        """Follow a `..` that came out of a link, along the directories that were really opened."""
        if not self.names:
            raise self._refused("a symbolic link in it leads outside the root")
        os.close(self.opened.pop())
        self.names.pop()

    def _go_down(self, name: str) -> None:
        descriptor = os.open(name, DIRECTORY_FLAGS, dir_fd=self.opened[-1])
        self.opened.append(descriptor)
        self.names.append(name)
        if self.root.is_backup_directory(os.fstat(descriptor)):
            raise self._refused("the backup directory is reserved")
        if len(self.names) > MOST_PARTS:
            raise self._refused(f"the path has more than {MOST_PARTS} parts")

    def _take_link(self, name: str) -> Place | None:
        """Put what the link says in front of the parts still ahead, unless the link itself was asked for."""
        self.links += 1
        if self.links > MOST_LINKS:
            raise self._refused("too many symbolic links, or a loop of them")
        place = self._place(self.opened[-1], (*self.names, name))
        if not self.is_last_followed and not any(part not in ("", ".") for part in self.ahead):
            self._check_link_target()
            return place
        self.ahead.extendleft(reversed(self._parts_of(os.readlink(name, dir_fd=self.opened[-1]))))
        return None

    def _check_link_target(self) -> None:
        """Refuse a link that leads outside, in however many hops, even where only the link itself is meant."""
        with self.root.locate(self.asked, is_last_followed=True):
            return

    def _parts_of(self, target: str) -> list[str]:
        """Split what a link says; an absolute one must name something below the root and starts there."""
        if not target.startswith("/"):
            return target.split("/")
        prefix = f"{str(self.root.path).rstrip('/')}/"
        if not f"{target}/".startswith(prefix):
            raise self._refused("a symbolic link in it leads outside the root")
        while self.names:
            self._go_up()
        return target[len(prefix) :].split("/")

    def _end_at(self, name: str, status: os.stat_result) -> Place:
        if self.root.is_backup_directory(status):
            raise self._refused("the backup directory is reserved")
        rest = tuple(part for part in self.ahead if part not in ("", "."))
        return self._place(self.opened[-1], (*self.names, name, *rest), is_below_file=bool(rest))

    def _end_missing(self, name: str) -> Place:
        rest = tuple(part for part in self.ahead if part not in ("", "."))
        missing = (name, *rest) if rest else ()
        return self._place(self.opened[-1], (*self.names, name, *rest), missing=missing)

    def _place(
        self, parent: int, parts: tuple[str, ...], *, missing: tuple[str, ...] = (), is_below_file: bool = False
    ) -> Place:
        if ".." in parts:
            raise self._refused("a symbolic link in it climbs out of a directory that does not exist")
        if self.root.is_reserved(parts):
            raise self._refused("the name is reserved for the connector's own files")
        if not is_text("/".join(parts)):
            raise self._refused("it leads to a name that is not valid text")
        return Place(self.asked, parent, parts, missing, is_below_file)

    def _refused(self, reason: str) -> ToolError:
        return ToolError(f"{shown(self.asked)}: {reason}")
