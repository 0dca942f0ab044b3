"""What the gate raises, grouped by what the caller can do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from approvals.core.violations import Violation
from reversi_sdk.errors import Conflict, InvalidInput, NotAllowed, NotFound


class CallBlocked(NotAllowed):
    """The call was refused and nothing ran; the run's journal says why."""

    code = "call_blocked"

    def __init__(self, run_id: str, tool: str, violations: Sequence[Violation]) -> None:
        super().__init__(f"{tool} was blocked: {'; '.join(violation.message for violation in violations)}")
        self.run_id, self.tool, self.violations = run_id, tool, tuple(violations)


class BeforeRequired(Conflict):
    """The call would pass; first its caller must read the state that stood before (D35) and bring the answer."""

    code = "before_required"

    def __init__(self, tool: str, arguments: Mapping[str, Any]) -> None:
        super().__init__(f"the state before must be read first: call {tool} and pass its answer")
        self.tool, self.arguments = tool, dict(arguments)


class BadCall(InvalidInput):
    """A part of the call is malformed; nothing was written."""

    code = "bad_call"

    def __init__(self, part: str, problem: str) -> None:
        super().__init__(f"{part}: {problem}")
        self.part, self.problem = part, problem


class KeyConflict(InvalidInput):
    """The call carries two different idempotency keys."""

    code = "effect/idempotency_key_conflict"

    def __init__(self, argument: str) -> None:
        super().__init__(f"{argument}: holds another idempotency key than the call itself carries")
        self.argument = argument


class HaltNotFound(NotFound):
    """No such halt."""

    code = "halt_not_found"

    def __init__(self, halt_id: str) -> None:
        super().__init__(f"no halt {halt_id}")
        self.halt_id = halt_id


class NotResolvable(InvalidInput):
    """A person's word on a step cannot be taken as it was given."""

    code = "not_resolvable"
