"""Manifests from files: a file or a folder, one object or a list of them per file.

Whatever is wrong becomes a problem with file, line and column; nothing here raises for what stands on the disk.
A folder is walked in sorted order; hidden entries are left out, and a link back to a folder around it is refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from reversi_sdk.canonical import path_text
from reversi_sdk.documents import MAX_BYTES, Document, DocumentInvalid
from reversi_sdk.manifests import check_manifest, manifest_checksum, manifest_from_normal
from reversi_sdk.model import Manifest
from reversi_sdk.strict_json import load_json
from reversi_sdk.strict_yaml import load_yaml

_MAX_FOLDERS: Final = 64
SUFFIXES: Final = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """A sound manifest, and where it stands as `file:line`."""

    manifest: Manifest
    normalized: dict[str, Any]
    checksum: str
    source: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong in or with a file; `path` is the place inside the manifest of `tool`."""

    file: str
    line: int
    column: int
    tool: str | None
    path: str
    message: str
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """Everything read, and everything that could not be."""

    manifests: tuple[ManifestEntry, ...]
    problems: tuple[Problem, ...]


def load_manifests(path: Path) -> Loaded:
    """Read the manifests of a file or a folder."""
    found = [item for file in _files(path) for item in _read(file)]
    return Loaded(
        manifests=tuple(item for item in found if isinstance(item, ManifestEntry)),
        problems=tuple(item for item in found if isinstance(item, Problem)),
    )


def _files(path: Path) -> list[Path | Problem]:
    try:
        if path.is_dir():
            return list(_walk(path, frozenset())) or [_file_problem(path, "the folder holds no manifest file")]
        if not path.exists():
            return [_file_problem(path, "no such file or folder")]
    except (OSError, ValueError) as error:
        return [_file_problem(path, _reason(error))]
    if path.suffix.lower() not in SUFFIXES:
        return [_file_problem(path, f"is no manifest file: expected {', '.join(SUFFIXES)}")]
    return [path]


def _walk(folder: Path, above: frozenset[tuple[int, int]]) -> Iterator[Path | Problem]:
    try:
        status = folder.stat()
        entries = sorted((entry.name, entry.is_dir(), entry) for entry in folder.iterdir())
    except OSError as error:
        yield _file_problem(folder, _reason(error))
        return
    here = (status.st_dev, status.st_ino)
    if here in above or len(above) >= _MAX_FOLDERS:
        problem = "is a link to a folder around it" if here in above else f"is nested deeper than {_MAX_FOLDERS}"
        yield _file_problem(folder, problem)
        return
    for name, is_folder, entry in entries:
        if name.startswith("."):
            continue
        if is_folder:
            yield from _walk(entry, above | {here})
        elif entry.suffix.lower() in SUFFIXES:
            yield entry


def _read(file: Path | Problem) -> Iterator[ManifestEntry | Problem]:
    if isinstance(file, Problem):
        yield file
        return
    try:
        document = _document(file)
    except OSError as error:
        yield _file_problem(file, _reason(error))
    except DocumentInvalid as error:
        yield Problem(_shown(file), error.line, error.column, None, "", error.problem)
    else:
        yield from _entries(file, document)


def _document(file: Path) -> Document:
    if not file.is_file() and file.exists():
        # Reading a pipe or a device could wait for ever.
        raise OSError(0, "is no regular file")
    with file.open("rb") as stream:
        data = stream.read(MAX_BYTES + 1)
    load = load_json if file.suffix.lower() == ".json" else load_yaml
    return load(data, name=_shown(file))


def _entries(file: Path, document: Document) -> Iterator[ManifestEntry | Problem]:
    if document.value is None or document.value == []:
        yield _file_problem(file, "holds no manifest")
        return
    if not isinstance(document.value, list):
        yield from _entry(file, document, document.value, ())
        return
    for number, data in enumerate(document.value):
        yield from _entry(file, document, data, (number,))


def _entry(file: Path, document: Document, data: Any, base: tuple[int, ...]) -> Iterator[ManifestEntry | Problem]:
    checked = check_manifest(data)
    tool = data.get("tool") if isinstance(data, dict) else None
    for problem in checked.problems:
        line, column = document.locate((*base, *problem.path))
        name = tool if isinstance(tool, str) else None
        place = path_text(problem.path)
        yield Problem(_shown(file), line, column, name, place, problem.message, problem.code)
    if checked.normalized is not None:
        line, _ = document.locate(base)
        normalized = checked.normalized
        yield ManifestEntry(
            manifest=manifest_from_normal(normalized),
            normalized=normalized,
            checksum=manifest_checksum(normalized),
            source=f"{_shown(file)}:{line}",
        )


def _file_problem(path: Path, message: str) -> Problem:
    return Problem(file=_shown(path), line=1, column=1, tool=None, path="", message=message)


def _shown(path: Path) -> str:
    # A name that is not UTF-8 must not break whoever prints it.
    return os.fsencode(path).decode("utf-8", "replace")


def _reason(error: OSError | ValueError) -> str:
    reason = error.strerror if isinstance(error, OSError) else None
    return (reason or "cannot be read").lower()
