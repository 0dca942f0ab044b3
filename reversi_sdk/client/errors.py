"""What the client raises, each under the family that says what a caller can do about it.

An error that the server answered carries `code`, `status` and the problem document as they came; `call_blocked` and
its like are told by class, never by the words of a message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reversi_sdk.errors import Conflict, InvalidInput, NotAllowed, NotFound, ReversiError, Unavailable


class Refusal(ReversiError):
    """The server answered with a problem."""

    def __init__(self, problem: Mapping[str, Any], *, status: int) -> None:
        super().__init__(str(problem.get("detail") or problem.get("title") or f"the server answered {status}"))
        self.problem, self.status = dict(problem), status
        # The server's code is more special than the class's.
        vars(self)["code"] = str(problem.get("code") or type(self).code)


class RequestRefused(Refusal, InvalidInput):
    """The request is malformed, too large or cannot be carried out as it is."""

    code = "request_refused"


class NotSignedIn(Refusal, NotAllowed):
    """The API key is missing, unknown, expired or revoked."""

    code = "not_signed_in"


class Forbidden(Refusal, NotAllowed):
    """The API key may not do this."""

    code = "forbidden"


class NothingThere(Refusal, NotFound):
    """What was named does not exist."""

    code = "nothing_there"


class InConflict(Refusal, Conflict):
    """The request contradicts what is recorded, or something else holds the place."""

    code = "in_conflict"


class ServerBroke(Refusal):
    """The server failed inside; repeating the request would most likely fail again."""

    code = "server_broke"


class ServerBusy(Refusal, Unavailable):
    """The server cannot serve the request now."""

    code = "server_busy"


class ServerUnreachable(Unavailable):
    """No answer came, also after repeating the request; whether the server got it is not known."""

    code = "server_unreachable"


class AnswerNotUnderstood(Unavailable):
    """What answered does not speak this API; is the address right?"""

    code = "answer_not_understood"


class CallBlocked(NotAllowed):
    """The gate refused the call and nothing ran; `violations` are `{code, message}` in the gate's order."""

    code = "call_blocked"

    def __init__(self, violations: Sequence[Mapping[str, Any]]) -> None:
        messages = "; ".join(str(violation.get("message", "")) for violation in violations)
        super().__init__(f"the call was blocked: {messages}")
        self.violations = tuple(dict(violation) for violation in violations)


class ApprovalRequired(NotAllowed):
    """The call waits for people and nothing ran; make the same call again once they have answered."""

    code = "approval_required"

    def __init__(self, approval: Mapping[str, Any]) -> None:
        super().__init__(f"the call waits for approval {approval.get('id')} ({approval.get('state')})")
        self.approval = dict(approval)


class OutcomeNotReported(Unavailable):
    """The tool ran, and the server did not take how it ended; `result` is what the tool returned.

    Never make the call again before the step is settled with `run.reconcile` or `run.resolve`.
    """

    code = "outcome_not_reported"

    def __init__(self, *, run_id: str, step: int, result: Any, why: ReversiError) -> None:
        super().__init__(
            f"the call was made, do not repeat it; how step {step} of run {run_id} ended could not be reported: {why}"
        )
        self.add_note(where_it_stands(why))
        self.run_id, self.step, self.result = run_id, step, result


def where_it_stands(why: ReversiError) -> str:
    """Say where a step stands whose outcome was not taken."""
    if isinstance(why, Refusal) and not isinstance(why, ServerBusy):
        return f"the server refused the outcome ({why.code}): {why}"
    return "as far as is known the step stays intended; the server will call it uncertain, never failed"


class JobFailed(ReversiError):
    """A rollback or verification ended with an error of its own; the steps stand where the journal says."""

    code = "job_failed"

    def __init__(self, job: Mapping[str, Any]) -> None:
        super().__init__(f"job {job.get('job')} failed: {job.get('error') or 'the server gave no reason'}")
        self.job = dict(job)


class JobStillRunning(Unavailable):
    """A job did not end in the time that the caller gave it; it goes on without the caller."""

    code = "job_still_running"

    def __init__(self, job: Mapping[str, Any]) -> None:
        super().__init__(f"job {job.get('job')} is still {job.get('state')}; is a worker running?")
        self.job = dict(job)


class EmbeddedServerFailed(Unavailable):
    """The private server did not start."""

    code = "embedded_server_failed"
