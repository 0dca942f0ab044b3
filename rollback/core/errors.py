"""What can go wrong around a rollback, grouped by what the caller can do about it."""

from __future__ import annotations

from collections.abc import Sequence

from reversi_sdk.errors import Conflict, InvalidInput, NotFound


class SelectionInvalid(InvalidInput):
    """The selection of steps does not fit the run."""

    code = "selection_invalid"


class OptionsInvalid(InvalidInput):
    """An option of a rollback is out of its range."""

    code = "options_invalid"


class NoteRequired(InvalidInput):
    """Settling a step by hand needs a note that says why."""

    code = "note_required"

    def __init__(self) -> None:
        super().__init__("a note is required: say what was found and where")


class StatusUnknown(InvalidInput):
    """A step cannot be resolved to this word."""

    code = "status_unknown"

    def __init__(self, status: str, known: Sequence[str]) -> None:
        super().__init__(f"a step is resolved {', '.join(known[:-1])} or {known[-1]}, not {status!r}")
        self.status = status


class JobNotFound(NotFound):
    """No such job, or the run was never rolled back."""

    code = "job_not_found"


class RollbackRunning(Conflict):
    """One job at a time works on a run."""

    code = "rollback_running"

    def __init__(self, run_id: str, job_id: str, state: str, waiting_for: str | None = None) -> None:
        waits = "" if waiting_for is None else f", waiting for the gateway that holds the session of {waiting_for}"
        ways = "" if waiting_for is None else ", or, if that session has ended, roll back with the job's own options"
        super().__init__(f"run {run_id}: job {job_id} is already {state}{waits}; wait for it to end{ways}")
        self.run_id, self.job_id, self.state = run_id, job_id, state


class PlanStale(Conflict):
    """The plan is no longer the one that was looked at."""

    code = "plan_stale"

    def __init__(self, run_id: str, seen: str, current: str) -> None:
        super().__init__(f"the plan of run {run_id} changed since it was shown: look at the new one ({current[:12]})")
        self.run_id, self.seen, self.current = run_id, seen, current


class NotUndoneByHand(Conflict):
    """The step cannot be called undone by hand as it stands."""

    code = "not_undone_by_hand"

    def __init__(self, run_id: str, number: int, why: str) -> None:
        super().__init__(f"step {number} of run {run_id} cannot be resolved compensated: {why}")
        self.run_id, self.number, self.why = run_id, number, why


class ReadBackMismatch(Conflict):
    """The declared read-back contradicts the claim that the step was undone."""

    code = "read_back_mismatch"

    def __init__(self, run_id: str, number: int, tool: str, mismatch: str) -> None:
        super().__init__(f"step {number} of run {run_id} does not look undone: {tool} answers that {mismatch}")
        self.run_id, self.number, self.tool, self.mismatch = run_id, number, tool, mismatch


class UndoNotPossible(Conflict):
    """The undo of this step cannot be handed out as the run stands."""

    code = "undo_not_possible"

    def __init__(self, run_id: str, number: int, why: str, blocked_by: Sequence[int] = ()) -> None:
        super().__init__(f"step {number} of run {run_id} cannot be undone now: {why}")
        self.run_id, self.number, self.why, self.blocked_by = run_id, number, why, tuple(blocked_by)


class LeaseLost(Conflict):
    """The lease names no undo that is under way: it ended, or another executor took the run over."""

    code = "lease_lost"

    def __init__(self, run_id: str, number: int) -> None:
        super().__init__(f"the lease on the undo of step {number} of run {run_id} does not hold any more")
        self.run_id, self.number = run_id, number
