"""What kind of file system a folder is on: SQLite's locks and its shared memory do not hold over a network."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")
NETWORK = frozenset(
    {"afs", "beegfs", "ceph", "cifs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "smb3", "smbfs"}
)
NETWORK_FUSE = frozenset({"ceph", "davfs", "gcsfuse", "glusterfs", "rclone", "s3fs", "sshfs"})


def network_file_system(folder: Path) -> str | None:
    """Return the kind of network file system that the folder is on; None for a local one or where nobody can tell."""
    try:
        mounts = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    kind = kind_at(folder.resolve(), mounts)
    return kind if kind is not None and is_network(kind) else None


def kind_at(path: Path, mounts: Iterable[str]) -> str | None:
    """Return the kind of the deepest mount that holds the path; the last of two mounts on one place is the seen one."""
    found: tuple[int, str] | None = None
    for line in mounts:
        fields, _, source = line.partition(" - ")
        point = Path(_unescaped(fields.split(" ")[4])) if len(fields.split(" ")) > 4 else None
        if point is None or not path.is_relative_to(point):
            continue
        if found is None or len(point.parts) >= found[0]:
            found = len(point.parts), source.split(" ")[0]
    return None if found is None else found[1]


def is_network(kind: str) -> bool:
    """Tell whether a kind of file system lives on another machine."""
    return kind in NETWORK or (kind.removeprefix("fuse.") in NETWORK_FUSE and kind.startswith("fuse."))


def _unescaped(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text
