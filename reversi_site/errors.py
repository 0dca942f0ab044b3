"""What an error means at the edges: one table from error classes to exit codes, one to HTTP statuses.

Commands and views have no `try` for domain errors; each edge asks its table once, at its top. The most special class
decides, so a family may be told apart where one member means something else.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import IntEnum
from http import HTTPStatus

from approvals.core.errors import ApprovalRequired, BeforeRequired, NotAuthenticated
from ledger.core.errors import BadField, BadRunId, RunNotFound
from manifests_registry.core.errors import InvalidManifests
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
from reversi_site.configuration import ConfigurationInvalid
from reversi_site.kit.api.errors import BodyIncomplete, BodyTooLarge, CredentialsMissing, KeyReused
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

HTTP_STATUSES: Mapping[type[ReversiError], HTTPStatus] = {
    BodyTooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    BodyIncomplete: HTTPStatus.REQUEST_TIMEOUT,
    KeyReused: HTTPStatus.UNPROCESSABLE_ENTITY,
    CredentialsMissing: HTTPStatus.UNAUTHORIZED,
    NotAuthenticated: HTTPStatus.UNAUTHORIZED,
    BeforeRequired: HTTPStatus.PRECONDITION_REQUIRED,
    # No error of the caller's: the call waits, and this is how it is told.
    ApprovalRequired: HTTPStatus.ACCEPTED,
    # Whoever runs the deployment must mend these; a caller can only come again.
    InvalidManifests: HTTPStatus.SERVICE_UNAVAILABLE,
    ConfigurationInvalid: HTTPStatus.SERVICE_UNAVAILABLE,
    InvalidInput: HTTPStatus.BAD_REQUEST,
    NotFound: HTTPStatus.NOT_FOUND,
    NotAllowed: HTTPStatus.FORBIDDEN,
    Conflict: HTTPStatus.CONFLICT,
    ToolError: HTTPStatus.BAD_GATEWAY,
    EffectUncertainError: HTTPStatus.BAD_GATEWAY,
    Unavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    ReversiError: HTTPStatus.INTERNAL_SERVER_ERROR,
}


def http_status(error: ReversiError) -> HTTPStatus:
    """Return the status that an error is answered with."""
    return next(HTTP_STATUSES[kind] for kind in type(error).__mro__ if kind in HTTP_STATUSES)


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
