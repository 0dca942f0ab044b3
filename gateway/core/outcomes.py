"""What the end of a tool's function says about the effect of its call (D12, D39).

A return value is a success. `EffectUncertainError` and anything that a transport raises leave the outcome unknown;
every other exception is a definite failure.
"""

from __future__ import annotations

from typing import Any

from ledger.core.statuses import StepState
from reversi_sdk.lost_answers import is_answer_lost

TOO_MANY_REQUESTS = 429
SERVER_ERRORS = range(500, 600)


def outcome_of_error(error: BaseException) -> StepState:
    """Return what an exception out of a tool's function says: `failed`, or `uncertain`.

    Of a group one lost answer is enough.
    """
    if isinstance(error, ExceptionGroup):
        outcomes = {outcome_of_error(each) for each in error.exceptions}
        return StepState.UNCERTAIN if StepState.UNCERTAIN in outcomes else StepState.FAILED
    return StepState.UNCERTAIN if is_answer_lost(error) else StepState.FAILED


def is_repeatable(error: BaseException) -> bool:
    """Tell whether a harmless call may be made again: nothing was heard, or the server said that it was busy."""
    if not isinstance(error, Exception):
        return False
    status: Any = getattr(error, "status", None)
    is_busy = status == TOO_MANY_REQUESTS or (isinstance(status, int) and status in SERVER_ERRORS)
    return is_busy or outcome_of_error(error) is StepState.UNCERTAIN
