"""Take standard input and output away from everything but the protocol."""

from __future__ import annotations

import fcntl
import os
import sys
from dataclasses import dataclass

INPUT, OUTPUT, ERRORS = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Wire:
    """The descriptors through which the client is heard and answered."""

    incoming: int
    outgoing: int


def take_wire() -> Wire:
    """Return the wire, which is this process's alone from now on.

    What anything here, or a child, then prints to standard output goes to standard error, and who reads standard input
    finds it at its end.
    """
    sys.stdout.flush()
    wire = Wire(*(fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, ERRORS + 1) for descriptor in (INPUT, OUTPUT)))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, INPUT)
    os.close(nothing)
    os.dup2(ERRORS, OUTPUT)
    return wire
