"""What the file system answered, in plain words, as one of the three outcomes."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from connectors.core.outcomes import EffectUncertainError, ToolError

LONGEST_SHOWN = 200

WORDS = {
    errno.ENOENT: "it, or a directory on the way to it, does not exist",
    errno.ENOTDIR: "something on the way to it is not a directory",
    errno.EISDIR: "it is a directory",
    errno.EEXIST: "it exists already",
    errno.ENOTEMPTY: "the directory is not empty",
    errno.EACCES: "permission denied",
    errno.EPERM: "the operation is not permitted",
    errno.EROFS: "the file system is read-only",
    errno.ENOSPC: "no space is left on the device",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than the system allows",
    errno.ENAMETOOLONG: "a name in it is too long",
    errno.ELOOP: "a part of it became a symbolic link while it was being used",
    errno.EXDEV: "it lies on another file system",
    errno.EINVAL: "the file system refuses the operation",
    errno.EMFILE: "too many files are open",
    errno.ENFILE: "too many files are open",
    errno.EIO: "the device reported an error",
    errno.EBUSY: "it is in use by the system",
    errno.ENXIO: "it is a special file with nobody at the other end",
}


def shown(path: str) -> str:
    """Return `path` fit for a message: control characters escaped, cut when very long."""
    text = path if path.isprintable() else ascii(path)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def plain_words(error: OSError) -> str:
    """Say what an `OSError` means without its number or traceback."""
    return WORDS.get(error.errno or 0) or (error.strerror or "the system gave no reason").lower()


@contextmanager
def definite(path: str) -> Iterator[None]:
    """Turn an `OSError` of work that changed nothing so far into a definite failure naming `path`."""
    try:
        yield
    except OSError as error:
        raise ToolError(f"{shown(path)}: {plain_words(error)}") from error


@contextmanager
def in_doubt(path: str) -> Iterator[None]:
    """Turn an `OSError` that comes after the effect into an unknown outcome naming `path`."""
    try:
        yield
    except OSError as error:
        raise EffectUncertainError(f"{shown(path)}: changed, but then {plain_words(error)}") from error
