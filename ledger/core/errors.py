"""What can go wrong in the journal, grouped by what the caller can do about it."""

from __future__ import annotations

from collections.abc import Mapping

from ledger.core.statuses import Move
from reversi_sdk.errors import Conflict, InvalidInput, NotAllowed, NotFound

# How a refused move is told to whoever asked for it.
_REFUSALS: Mapping[Move, str] = {
    Move.SUCCEED: "it cannot be recorded succeeded",
    Move.FAIL: "it cannot be recorded failed",
    Move.LOSE: "its outcome cannot be recorded uncertain",
    Move.BEGIN_COMPENSATION: "its undo cannot be begun",
    Move.TAKE_OVER: "there is no undo to take over",
    Move.COMPENSATE: "no undo is under way that could be recorded done",
    Move.FAIL_COMPENSATION: "no undo is under way that could be recorded failed",
    Move.REVOKE_COMPENSATION: "there is no undo to read back",
    Move.COMPENSATE_BY_HAND: "it cannot be resolved compensated",
    Move.DENY_COMPENSATION: "it cannot be resolved succeeded",
    Move.RESOLVE_SUCCEEDED: "it cannot be resolved succeeded",
    Move.RESOLVE_FAILED: "it cannot be resolved failed",
    Move.OVERRULE_SUCCEEDED: "it cannot be resolved succeeded",
    Move.OVERRULE_FAILED: "it cannot be resolved failed",
    Move.CONFIRM_COMPENSATION: "it cannot be resolved compensated",
}


class BadRunId(InvalidInput):
    """The run id does not have the form of one."""

    code = "bad_run_id"

    def __init__(self, run_id: str) -> None:
        super().__init__(
            f"{run_id!r} is no run id: letters, digits and _ . : - only, starting with a letter or digit, at most 128"
        )


class BadField(InvalidInput):
    """A field of a run, a note or a reason cannot be stored as it is."""

    code = "bad_field"

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field}: {why}")
        self.field = field


class RunNotFound(NotFound):
    """No such run."""

    code = "run_not_found"

    def __init__(self, run_id: str) -> None:
        super().__init__(f"no run {run_id}")
        self.run_id = run_id


class StepNotFound(NotFound):
    """The run has no such step."""

    code = "step_not_found"

    def __init__(self, run_id: str, number: int) -> None:
        super().__init__(f"run {run_id} has no step {number}")
        self.run_id, self.number = run_id, number


class ForeignRun(NotAllowed):
    """Only the principal that opened a run may continue it."""

    code = "foreign_run"

    def __init__(self, run_id: str) -> None:
        super().__init__(f"run {run_id} belongs to another principal")


class RunClosed(Conflict):
    """A closed run takes no calls; it can still be planned and rolled back."""

    code = "run_closed"

    def __init__(self, run_id: str) -> None:
        super().__init__(f"run {run_id} is closed: open another run for new calls")


class IllegalTransition(Conflict):
    """The step stands where this move cannot start, or another writer moved it first."""

    code = "illegal_transition"

    def __init__(self, run_id: str, number: int, move: Move, state: str) -> None:
        super().__init__(f"step {number} of run {run_id} is {state}: {_REFUSALS[move]}")
        self.run_id, self.number, self.move, self.state = run_id, number, move, state


class OutcomeConflict(Conflict):
    """A completion contradicts the outcome that is already recorded."""

    code = "outcome_conflict"

    def __init__(self, run_id: str, number: int, recorded: str, reported: str, *, is_disputed: bool) -> None:
        ending = "; the contradiction is journaled, resolve the step again" if is_disputed else ""
        super().__init__(f"step {number} of run {run_id} is already recorded {recorded}, not {reported}{ending}")
        self.recorded, self.reported, self.is_disputed = recorded, reported, is_disputed


class FenceLost(Conflict):
    """Another executor took the run over: nothing may be written under the old fence."""

    code = "fence_lost"

    def __init__(self, run_id: str, fence: int) -> None:
        super().__init__(f"run {run_id} was taken over by another executor (fence {fence} is old)")
        self.run_id, self.fence = run_id, fence


class CallKeyTaken(Conflict):
    """Another standing call holds the same call key (D16)."""

    code = "duplicate"

    def __init__(self, run_id: str, number: int) -> None:
        super().__init__(f"duplicate of step {number} of run {run_id}")
        self.run_id, self.number = run_id, number


class AnswerLost(Conflict):
    """The request was answered before, and its answer can no longer be opened."""

    code = "answer_lost"

    def __init__(self) -> None:
        super().__init__("this request was answered before, and the answer cannot be opened any more: look what it did")
