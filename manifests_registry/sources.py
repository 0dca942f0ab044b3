"""Plain manifest files as a source: read once, and again only when they changed.

Before each use the files are looked at (size, times, inode); their content is read again when something moved, and
judged again when the content did. A file that changed only just now could change once more within one tick of the
file system's clock and look the same, so until it has aged its content is compared as well.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from manifests_registry.core.errors import InvalidManifests
from manifests_registry.core.snapshot import Snapshot
from manifests_registry.core.validation import judge, load_path, problem_line
from reversi_sdk.canonical import sha256_hex
from reversi_sdk.manifest_files import SUFFIXES

AGED_NS = 2_000_000_000

Looks = tuple[tuple[str, int, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class _Reading:
    """What was read, and what the files looked like just before."""

    looks: Looks
    content: str
    is_aged: bool
    snapshot: Snapshot


class SnapshotCache:
    """The last snapshot of each set of paths, shared by the threads of a process."""

    def __init__(self, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._now_ns = now_ns
        self._readings: dict[tuple[Path, ...], _Reading] = {}
        self._lock = Lock()

    def get(self, paths: tuple[Path, ...]) -> Snapshot:
        """Return the manifests as they are now; raises InvalidManifests."""
        looks = look_at(paths)
        known = self._readings.get(paths)
        if known is not None and known.looks == looks and known.is_aged:
            return known.snapshot
        with self._lock:
            return self._refresh(paths)

    def _refresh(self, paths: tuple[Path, ...]) -> Snapshot:
        looks = look_at(paths)
        is_aged = all(self._now_ns() - changed_ns > AGED_NS for _, _, _, *times in looks for changed_ns in times)
        content = _content(looks)
        known = self._readings.get(paths)
        snapshot = known.snapshot if known is not None and known.content == content else read_snapshot(paths)
        self._readings[paths] = _Reading(looks, content, is_aged, snapshot)
        return snapshot


def read_snapshot(paths: Sequence[Path]) -> Snapshot:
    """Read and judge all the files; raises InvalidManifests listing every problem."""
    snapshot, problems = judge([load_path(path) for path in paths])
    if problems:
        raise InvalidManifests([problem_line(problem) for problem in problems])
    return snapshot


def look_at(paths: Sequence[Path]) -> Looks:
    """Return what tells a changed file from an unchanged one, without reading any."""
    return tuple(_look(file) for path in paths for file in _files(path))


def _look(file: str) -> tuple[str, int, int, int, int]:
    try:
        found = Path(file).stat()
    except (OSError, ValueError):
        return (file, -1, -1, 0, 0)
    return (file, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _files(path: Path) -> Iterator[str]:
    if not _is_folder(path):
        yield str(path)
        return
    seen: set[str] = set()
    for folder, folders, files in os.walk(path, followlinks=True):
        # A link may lead back up.
        real = os.path.realpath(folder)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders.sort()
        yield from (str(Path(folder, name)) for name in sorted(files) if name.lower().endswith(SUFFIXES))


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _content(looks: Looks) -> str:
    digests = []
    for file, *_ in looks:
        try:
            # Reading a pipe or a device could wait for ever.
            body = Path(file).read_bytes() if Path(file).is_file() else b""
            digests.append(f"{file}\0{sha256_hex(body)}")
        except (OSError, ValueError) as error:
            digests.append(f"{file}\0{error}")
    return sha256_hex("\n".join(digests).encode("utf-8", "surrogateescape"))
