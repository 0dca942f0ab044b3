"""Reads a file or a directory within limits, links followed only inside the root."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from connectors.core.files.confinement import DIRECTORY_FLAGS, ConfinedRoot, Place
from connectors.core.files.content import as_text
from connectors.core.files.errors import shown
from connectors.core.files.relative_path import is_text
from connectors.core.files.state import Kind, kind_of, mode_text, open_regular, status_of
from connectors.core.outcomes import ToolError

READ_LIMIT_BYTES = 10 * 1024 * 1024
LIST_LIMIT_ENTRIES = 10_000


def read_bytes(place: Place) -> tuple[bytes, os.stat_result]:
    """Read the whole regular file at `place`, which must not be larger than the limit."""
    with open_regular(place.parent, place.name) as descriptor:
        status = os.fstat(descriptor)
        content = bytearray()
        while len(content) <= READ_LIMIT_BYTES and (chunk := os.read(descriptor, READ_LIMIT_BYTES)):
            content += chunk
    if max(len(content), status.st_size) > READ_LIMIT_BYTES:
        raise ToolError(f"{shown(place.path)}: the file is larger than {READ_LIMIT_BYTES} bytes, the most read at once")
    return bytes(content), status


def read_content(place: Place) -> dict[str, Any]:
    """Read the file at `place` as a result: as text where it is UTF-8, else as base64."""
    content, status = read_bytes(place)
    text, encoding = as_text(content)
    return {
        "path": place.path,
        "content": text,
        "encoding": encoding,
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "mode": mode_text(status.st_mode),
    }


def list_entries(root: ConfinedRoot, place: Place) -> tuple[list[dict[str, Any]], int, bool]:
    """List a directory by name; also count the names that are no text, and say whether the list was cut.

    The connector's own files are left out, and so are names that no path can spell.
    """
    with opened_directory(place) as directory:
        names = names_in(directory)
        texts = [name for name in names if is_text(name)]
        entries: list[dict[str, Any]] = []
        for name in texts:
            status = status_of(directory, name)
            if status is None or root.is_reserved((*place.parts, name)) or root.is_backup_directory(status):
                continue
            if len(entries) == LIST_LIMIT_ENTRIES:
                return entries, len(names) - len(texts), True
            entries.append(_entry(name, status))
    return entries, len(names) - len(texts), False


def _entry(name: str, status: os.stat_result) -> dict[str, Any]:
    kind = kind_of(status.st_mode)
    size = status.st_size if kind is Kind.FILE else None
    return {"name": name, "kind": kind.value, "size": size, "mode": mode_text(status.st_mode)}


def names_in(directory: int) -> list[str]:
    """Return the names in an open directory, sorted."""
    with os.scandir(directory) as entries:
        return sorted(entry.name for entry in entries)


@contextmanager
def opened_directory(place: Place) -> Iterator[int]:
    """Open the directory at `place`."""
    descriptor = os.open(place.name, DIRECTORY_FLAGS, dir_fd=place.parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
