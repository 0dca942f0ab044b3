"""What an error means at the edges: one table from error classes to exit codes.

Commands have no `try` for domain errors; the command line asks this table once, at its top. The most special class
decides, so a family may be told apart where one member means something else. A column for HTTP goes here too.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import IntEnum

from ledger.core.errors import BadField, BadRunId, RunNotFound
from reversi_sdk.errors import (
    Conflict,
    EffectUncertainError,
    InvalidInput,
    NotAllowed,
    NotFound,
    ReversiError,
    ToolError,
    Unavailable,
)
from rollback.core.errors import NoteRequired, OptionsInvalid, StatusUnknown


class ExitCode(IntEnum):
    """What a command tells the shell."""

    FINE = 0
    REFUSED = 1
    INCOMPLETE = 2
    USAGE = 64
    UNAVAILABLE = 69
    INTERNAL = 70
    INTERRUPTED = 130
    OUTPUT_CLOSED = 141


EXIT_CODES: Mapping[type[ReversiError], ExitCode] = {
    # These only ever come from what was typed, where they are wrong arguments.
    BadRunId: ExitCode.USAGE,
    BadField: ExitCode.USAGE,
    NoteRequired: ExitCode.USAGE,
    OptionsInvalid: ExitCode.USAGE,
    StatusUnknown: ExitCode.USAGE,
    InvalidInput: ExitCode.REFUSED,
    NotFound: ExitCode.REFUSED,
    NotAllowed: ExitCode.REFUSED,
    Conflict: ExitCode.REFUSED,
    ToolError: ExitCode.REFUSED,
    EffectUncertainError: ExitCode.INCOMPLETE,
    Unavailable: ExitCode.UNAVAILABLE,
    ReversiError: ExitCode.INTERNAL,
}

# Another working folder is another store, so a run that is not there is most often looked for in the wrong place.
WRONG_STORE = "; `reversi runs list` shows the runs of this store, `reversi --data` chooses another"


def exit_code(error: BaseException) -> ExitCode:
    """Return the exit code for an error that reached the edge; what nobody declared is an internal error."""
    if is_database_unavailable(error):
        return ExitCode.UNAVAILABLE
    for kind in type(error).__mro__:
        if kind in EXIT_CODES:
            return EXIT_CODES[kind]
    return ExitCode.INTERNAL


def is_database_unavailable(error: BaseException) -> bool:
    """Tell whether the database itself could not do its work: unreachable, locked, full, read-only or damaged."""
    if "django.db" not in sys.modules:
        return False
    from django.db.utils import DatabaseError, InterfaceError, OperationalError

    return isinstance(error, OperationalError | InterfaceError) or type(error) is DatabaseError


def describe(error: BaseException) -> str:
    """Return what a person is told: what went wrong, and for the undeclared what to do about it."""
    if isinstance(error, ReversiError):
        hint = WRONG_STORE if isinstance(error, RunNotFound) else ""
        return (str(error) or error.code) + hint
    text = " ".join(str(error).split())
    if is_database_unavailable(error):
        return f"the store cannot be used: {text}; `reversi doctor` says more"
    return f"internal error: {type(error).__name__}: {text}; set REVERSI_DEBUG=1 to see where, and please report it"
