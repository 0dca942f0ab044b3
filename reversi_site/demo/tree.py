"""A folder as a value: every name with its kind, mode and bytes, so that two moments can be compared."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

BINARY = bytes(range(256)) * 16
FILES: Mapping[str, tuple[bytes, int]] = {
    "README.txt": (b"The quarterly report.\nNobody touches this by hand.\n", 0o644),
    "config/app.ini": ("[app]\nname = Zürich\n".encode(), 0o600),
    "images/logo.png": (BINARY, 0o640),
    "notes/Größe – Übersicht.md": ("# Größe\n\nÄpfel, 苹果, яблоки\n".encode(), 0o644),
    "scripts/run.sh": (b"#!/bin/sh\nexec true\n", 0o750),
    "keep/untouched.bin": (BINARY[::-1], 0o444),
    "keep/empty.txt": (b"", 0o604),
    "keep/nested/рецепт 📄.txt": ("не трогать\n".encode(), 0o644),
}
FOLDERS: Mapping[str, int] = {"keep/empty": 0o711, "keep/nested": 0o755, "config": 0o700}


@dataclass(frozen=True, slots=True)
class Item:
    """One name of a tree."""

    kind: str
    mode: int
    content: bytes


def plant(root: Path) -> None:
    """Make the folder that the agent will work in."""
    for name in FOLDERS:
        (root / name).mkdir(parents=True, exist_ok=True)
    for name, (content, mode) in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode)
    for name, mode in FOLDERS.items():
        (root / name).chmod(mode)


def photograph(root: Path) -> Mapping[str, Item]:
    """Return everything below the root, and the root itself, by relative path."""
    return dict(_items(root, root))


def _items(root: Path, path: Path) -> Iterator[tuple[str, Item]]:
    status = path.lstat()
    name = str(path.relative_to(root))
    if stat.S_ISDIR(status.st_mode):
        yield name, Item("folder", stat.S_IMODE(status.st_mode), b"")
        for entry in sorted(path.iterdir()):
            yield from _items(root, entry)
    elif stat.S_ISLNK(status.st_mode):
        yield name, Item("link", 0, os.fsencode(path.readlink()))
    else:
        yield name, Item("file", stat.S_IMODE(status.st_mode), path.read_bytes())


def differences(before: Mapping[str, Item], after: Mapping[str, Item]) -> tuple[str, ...]:
    """Say in words what differs, a line a name."""
    return tuple(
        f"{name}: {_difference(before.get(name), after.get(name))}"
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    )


def _difference(before: Item | None, after: Item | None) -> str:
    if before is None or after is None:
        return "is new" if before is None else "is gone"
    if before.kind != after.kind:
        return f"was a {before.kind}, is a {after.kind}"
    if before.mode != after.mode:
        return f"had mode {before.mode:04o}, has {after.mode:04o}"
    return f"had {len(before.content)} bytes, has {len(after.content)} others"
