"""Renames that never replace what stands at the new name.

Linux can do that in one step (`renameat2`). Elsewhere, and on file systems that lack it, a file is linked to its new
name, which fails when the name is taken, and then loses its old one. A directory cannot be linked: there the
destination is looked at first, and in the instant between look and rename an empty directory made by somebody else
would be replaced; nothing with content can be lost.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from connectors.core.files.state import status_of

RENAME_NOREPLACE = 1
NOT_OFFERED = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP})

# Old directory, old name, new directory, new name.
Rename = Callable[[int, str, int, str], None]


@dataclass(frozen=True, slots=True)
class Name:
    """A name in an opened directory."""

    parent: int
    name: str


def rename_no_replace(old: Name, new: Name, *, offered: Callable[[], Rename | None] | None = None) -> None:
    """Rename, or raise `FileExistsError` and change nothing when the new name is taken.

    `offered` says which one-step rename there is; by default the C library's.
    """
    rename = (offered or kernel_rename)()
    if rename is None:
        rename_by_link(old, new)
        return
    try:
        rename(old.parent, old.name, new.parent, new.name)
    except OSError as error:
        if error.errno not in NOT_OFFERED:
            raise
        rename_by_link(old, new)


@cache
def kernel_rename() -> Rename | None:
    """Return the one-step rename of the C library, or none where it has none."""
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is None:
        return None
    function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)

    def rename(old_parent: int, old: str, new_parent: int, new: str) -> None:
        if function(old_parent, os.fsencode(old), new_parent, os.fsencode(new), RENAME_NOREPLACE) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    return rename


def rename_by_link(old: Name, new: Name) -> None:
    """Do the same with a hard link, or for a directory with a look beforehand."""
    status = os.stat(old.name, dir_fd=old.parent, follow_symlinks=False)
    if not stat.S_ISDIR(status.st_mode):
        _link_then_unlink(old, new)
        return
    if status_of(new.parent, new.name) is not None:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    os.rename(old.name, new.name, src_dir_fd=old.parent, dst_dir_fd=new.parent)


def _link_then_unlink(old: Name, new: Name) -> None:
    os.link(old.name, new.name, src_dir_fd=old.parent, dst_dir_fd=new.parent, follow_symlinks=False)
    try:
        os.unlink(old.name, dir_fd=old.parent)
    except OSError:
        os.unlink(new.name, dir_fd=new.parent)
        raise
