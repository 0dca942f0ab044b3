"""What went wrong before a call was announced, or around a tool of our own, as an answer in words."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from django.db import Error as DatabaseError

from approvals.core.errors import ApprovalRequired, CallBlocked, NotPermitted, WiderThanKey
from gateway.core import answers
from gateway.core.answers import Result
from gateway.mcp.client_runs import RunFixed
from gateway.operations.runs import NoPresentRun
from ledger.core.errors import BadRunId, ForeignRun, RunClosed, RunNotFound
from reversi_sdk.errors import ReversiError, Unavailable
from rollback.core.errors import PlanStale, RollbackRunning

logger = logging.getLogger(__name__)

ADVICE: Mapping[type[ReversiError], str] = {
    RunClosed: (
        'Open another run with the tool reversi.run and {"new": true}, then repeat the call; where your run is '
        "fixed, ask your operator."
    ),
    ForeignRun: (
        'Name a run of your own, or open one with the tool reversi.run and {"new": true}; where your run is fixed, '
        "ask your operator."
    ),
    RunFixed: "Go on without naming a run; for another one, ask your operator.",
    BadRunId: "Name the run as it was given to you, or leave the name out.",
    NoPresentRun: "Name the run that is meant.",
    RunNotFound: "Name the run as it was given to you, or leave the name out.",
    NotPermitted: "Ask somebody whose role allows it.",
    WiderThanKey: "Ask your operator for more, or ask for less.",
    PlanStale: "Look at the plan again, and pass its digest.",
    RollbackRunning: "Repeat this later; it will then report how the run stands.",
    Unavailable: "Nothing was sent. The same call may pass later.",
}


def failed(error: Exception, *, console_url: str | None = None) -> Result:
    """Return the answer for an exception; what nobody declared is logged, and nothing of it is told."""
    match error:
        case CallBlocked():
            blocked = answers.blocked(error.tool, error.violations)
            return answers.with_meta(blocked, {answers.META_RUN: error.run_id})
        case ApprovalRequired():
            waiting = answers.approval_required(error.approval, console_url)
            return answers.with_meta(waiting, {answers.META_RUN: error.approval.run_id})
        case ReversiError():
            return answers.failure(error.code, str(error) or error.code, _advice(error))
        case DatabaseError():
            logger.error("the store cannot be used: %s", error)
            return answers.failure("ledger_unavailable", "the journal cannot be used now", ADVICE[Unavailable])
        case _:
            logger.error("a request broke inside the gateway", exc_info=error)
            return answers.failure("internal_error", "something went wrong inside the gateway; its log says what")


def _advice(error: ReversiError) -> str:
    return next((ADVICE[kind] for kind in type(error).__mro__ if kind in ADVICE), "")
