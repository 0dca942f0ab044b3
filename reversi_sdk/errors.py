"""The root of every error that Reversi raises on purpose.

Each family below `ReversiError` stands for one thing a caller can do about it. A class carries a stable `code`
and its facts as attributes; the message is built from them, and nothing ever matches words in a message.
"""

from __future__ import annotations

from typing import ClassVar


class ReversiError(Exception):
    """Anything Reversi refuses or reports; `code` is stable across releases."""

    code: ClassVar[str] = "error"


class InvalidInput(ReversiError):
    """What was passed in is malformed: mend it and call again. Nothing was written."""

    code = "invalid_input"


class NotFound(ReversiError):
    """The thing named does not exist."""

    code = "not_found"


class Conflict(ReversiError):
    """The call contradicts what is already recorded, or something else holds the place."""

    code = "conflict"


class NotAllowed(ReversiError):
    """The caller may not do this."""

    code = "not_allowed"


class Unavailable(ReversiError):
    """The store or an upstream cannot be reached; the same call may pass later."""

    code = "unavailable"


class ToolError(ReversiError):
    """A tool ran, answered, and did not do what was asked: a definite failure."""

    code = "tool_failed"


class EffectUncertainError(ReversiError):
    """The outcome of a call that may have changed something was lost (D39): never taken for a failure."""

    code = "effect_uncertain"
