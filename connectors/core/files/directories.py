"""Makes directories with their missing parents, and takes back exactly those.

Making is all or nothing: when a later part fails, the earlier ones are removed again. Taking back looks at all of
them before it removes any, so a directory that holds something else stops it before anything is gone; what somebody
puts there in the instant between look and removal makes that one removal fail, and nothing with content is ever lost.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from connectors.core.files.confinement import DIRECTORY_FLAGS, ConfinedRoot, Place
from connectors.core.files.errors import in_doubt, shown
from connectors.core.files.flushing import flush_directory
from connectors.core.files.reading import names_in, opened_directory
from connectors.core.files.standing import NAMES, changed_since, look_in
from connectors.core.files.state import Kind, kind_of, status_of
from connectors.core.outcomes import ToolError

NEW_DIRECTORY_MODE = 0o777


@dataclass(frozen=True, slots=True)
class _Made:
    """A directory that this call made: the directory it is in, and its path."""

    parent: int
    name: str
    path: str


def make_directories(place: Place) -> tuple[str, ...]:
    """Make the directory at `place` and its missing parents; return the paths made, topmost first."""
    if place.is_below_file:
        raise ToolError(f"{shown(place.path)}: something on the way to it is not a directory")
    names, done = _ahead(place)
    with ExitStack() as opened:
        made: list[_Made] = []
        try:
            _make_each(place.parent, done, names, made, opened)
        except Exception:
            _remove_made(made)
            raise
        with in_doubt(place.path):
            for directory in made:
                flush_directory(directory.parent)
        return tuple(directory.path for directory in made)


def missing_directories(place: Place) -> tuple[str, ...]:
    """Return the paths that `make_directories` would make at a place where nothing stands, topmost first."""
    names, done = _ahead(place)
    return tuple("/".join((*done, *names[: index + 1])) for index in range(len(names)))


def _ahead(place: Place) -> tuple[Sequence[str], tuple[str, ...]]:
    names = place.missing or (place.name,)
    return names, place.parts[: len(place.parts) - len(names)]


def _make_each(parent: int, done: tuple[str, ...], names: Sequence[str], made: list[_Made], opened: ExitStack) -> None:
    for index, name in enumerate(names):
        path = "/".join((*done, *names[: index + 1])) or "."
        if _make_one(parent, name, path):
            made.append(_Made(parent, name, path))
        parent = os.open(name, DIRECTORY_FLAGS, dir_fd=parent)
        opened.callback(os.close, parent)


def _make_one(parent: int, name: str, path: str) -> bool:
    """Make one directory and say whether it was not there before."""
    try:
        os.mkdir(name, NEW_DIRECTORY_MODE, dir_fd=parent)
    except FileExistsError:
        status = status_of(parent, name)
        if status is not None and kind_of(status.st_mode) is not Kind.DIRECTORY:
            raise ToolError(f"{shown(path)}: {NAMES[kind_of(status.st_mode)]} has that name already") from None
        return False
    return True


def _remove_made(made: Sequence[_Made]) -> None:
    """Take back what a failed call made; what holds something by now, or cannot be removed, leaves doubt."""
    for directory in reversed(made):
        with in_doubt(directory.path):
            os.rmdir(directory.name, dir_fd=directory.parent)


def require_above(path: str, created: Sequence[str]) -> None:
    """Refuse directories to take back that are neither `path` nor above it."""
    for made in created:
        if made in ("", ".") or not f"{path}/".startswith(f"{made}/"):
            raise ToolError(f"argument created: {shown(made)} is neither {shown(path)} nor a directory above it")


def take_back_directories(root: ConfinedRoot, created: Sequence[str], *, is_overwrite_allowed: bool) -> tuple[str, ...]:
    """Remove those of `created` that still stand, deepest first, and return them; all must be empty but for each other.

    A directory with anything else in it is never removed, whatever is allowed.
    """
    present = tuple(path for path in sorted(created, key=len) if _stands(root, path))
    leftover = _first_leftover(root, present)
    if leftover is not None:
        reason = f"{shown(leftover)} stands in a directory that the call made; nothing was removed"
        raise ToolError(reason) if is_overwrite_allowed else changed_since(reason)
    for path in reversed(present):
        with root.locate(path, is_last_followed=False) as place:
            os.rmdir(place.name, dir_fd=place.parent)
            with in_doubt(path):
                flush_directory(place.parent)
    return tuple(reversed(present))


def _stands(root: ConfinedRoot, path: str) -> bool:
    with root.locate(path, is_last_followed=False) as place:
        state = look_in(place).state
    if not state.exists:
        return False
    if state.kind is not Kind.DIRECTORY or place.path != path:
        raise changed_since(f"{shown(path)} is no longer the directory that was made")
    return True


def _first_leftover(root: ConfinedRoot, present: Sequence[str]) -> str | None:
    """Return the first thing, deepest directory and lowest name first, that stands in these and is none of them."""
    for path in reversed(present):
        with root.locate(path, is_last_followed=False) as place, opened_directory(place) as descriptor:
            names = names_in(descriptor)
        for name in names:
            if f"{path}/{name}" not in present:
                return f"{path}/{name}"
    return None
