from __future__ import annotations

from pathlib import Path

import pytest

from reversi_site.file_systems import is_network, kind_at

MOUNTS = [
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw",
    "30 22 0:40 / /srv rw,relatime shared:2 - nfs4 files:/export rw,vers=4.2",
    "31 30 8:2 / /srv/local rw,relatime - xfs /dev/sdb1 rw",
    "32 22 0:41 / /mnt/my\\040share rw - cifs //host/share rw",
    "33 22 0:42 / /mnt/remote rw - fuse.sshfs me@host: rw",
    "34 22 0:43 / /twice rw - nfs host:/a rw",
    "35 22 8:3 / /twice rw - ext4 /dev/sdc1 rw",
    "36 22 broken",
]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/reversi", "ext4"),
        ("/srv/reversi", "nfs4"),
        ("/srv/local/reversi", "xfs"),
        ("/srvother", "ext4"),
        ("/mnt/my share/data", "cifs"),
        ("/mnt/remote/data", "fuse.sshfs"),
        ("/twice/data", "ext4"),
    ],
)
def test_kind_at_takes_the_deepest_mount_that_is_seen(path: str, kind: str) -> None:
    assert kind_at(Path(path), MOUNTS) == kind


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("ext4", False),
        ("overlay", False),
        ("tmpfs", False),
        ("fuse.ext4", False),
        ("sshfs", False),
        ("nfs", True),
        ("nfs4", True),
        ("cifs", True),
        ("fuse.sshfs", True),
        ("fuse.glusterfs", True),
    ],
)
def test_is_network_knows_the_kinds_that_lose_locks(kind: str, expected: bool) -> None:
    assert is_network(kind) is expected
