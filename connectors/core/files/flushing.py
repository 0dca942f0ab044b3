"""Makes names durable."""

from __future__ import annotations

import errno
import os


def flush_directory(directory: int) -> None:
    """Flush the names in an open directory to the disk, where the file system offers that."""
    try:
        os.fsync(directory)
    except OSError as error:
        # Some network file systems cannot flush a directory and answer so; that is no doubt about the effect.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
