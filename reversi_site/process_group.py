"""Keep the queue's processes together: a signal to the whole group reaches the main one only, and none outlives it.

The queue hangs when a group signal hits all of its processes at once, and orphans of a killed main process would
work on without anybody watching. So the first child leads a group of its own, and on Linux the kernel kills each
child when its parent dies.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


def detach_children() -> None:
    """From now on, put children of this process in a group of their own and tie every descendant to its parent."""
    main = os.getpid()
    libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None

    def after_fork() -> None:
        if os.getppid() == main:
            os.setpgrp()
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    os.register_at_fork(after_in_child=after_fork)


def dying_with_parent() -> Callable[[], None]:
    """Return what a new child must do first so that the kernel kills it when this process dies; nothing elsewhere."""
    parent = os.getpid()
    libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None

    def in_child() -> None:
        if libc is None:
            return
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            # It died before it could be watched.
            os._exit(1)

    return in_child
