"""Errors that a wire of ours puts in the place of an answer, in the form in which the library passes errors on.

A mark that no server can know tells them from what a server says: a number alone it could have chosen too.
"""

from __future__ import annotations

import secrets
from enum import StrEnum
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, ErrorData

_MARK = secrets.token_hex(16)


class Trouble(StrEnum):
    """What took the place of an answer."""

    NOT_SENT = "not_sent"
    ANSWER_LOST = "answer_lost"
    ANSWER_INVALID = "answer_invalid"
    BROKE = "broke"
    REFUSED = "refused"
    SESSION_GONE = "session_gone"


def own_error(trouble: Trouble, message: str) -> ErrorData:
    """Return the error for the request that is not answered otherwise."""
    return ErrorData(code=INTERNAL_ERROR, message=message, data={"mark": _MARK, "trouble": trouble.value})


def trouble_of(error: MCPError) -> Trouble | None:
    """Return what our own wire said, None when a server or the library speaks."""
    data: Any = error.error.data
    if not isinstance(data, dict) or data.get("mark") != _MARK:
        return None
    return Trouble(data["trouble"])
