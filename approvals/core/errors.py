"""What the gate raises, grouped by what the caller can do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from approvals.core.violations import Violation
from reversi_sdk.errors import Conflict, InvalidInput, NotAllowed, NotFound

if TYPE_CHECKING:
    from approvals.core.requests import ApprovalRecord


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


class NotPermitted(NotAllowed):
    """None of the caller's roles may do this."""

    code = "permission_denied"

    def __init__(self, username: str, act: str) -> None:
        super().__init__(f"{username} may not {act.replace('_', ' ')}")
        self.username, self.act = username, act


class WiderThanKey(NotAllowed):
    """The run would be, or is, wider than what the key was made for."""

    code = "wider_than_key"

    def __init__(self, field: str) -> None:
        super().__init__(f"{field}: the run is wider than this API key or gateway allows")
        self.field = field


class NotAuthenticated(NotAllowed):
    """Nobody can tell who is asking. The subclasses differ for the log; a caller is told this one's code."""

    code = "auth_required"

    def __init__(self) -> None:
        super().__init__("a valid API key is required")


class KeyUnknown(NotAuthenticated):
    """No key has this prefix and secret."""

    code = "key_unknown"


class KeyExpired(NotAuthenticated):
    """The key's time is over."""

    code = "key_expired"


class KeyRevoked(NotAuthenticated):
    """The key was revoked, or its owner may not act any more."""

    code = "key_revoked"


class KeyNotFound(NotFound):
    """No API key has this prefix."""

    code = "key_not_found"

    def __init__(self, prefix: str) -> None:
        super().__init__(f"no API key {prefix}")
        self.prefix = prefix


class PersonNotFound(NotFound):
    """No user has this name."""

    code = "person_not_found"

    def __init__(self, username: str) -> None:
        super().__init__(f"no user {username}")
        self.username = username


class BadPerson(InvalidInput):
    """A user, a role or a key cannot be made as asked for."""

    code = "bad_person"

    def __init__(self, part: str, problem: str) -> None:
        super().__init__(f"{part}: {problem}")
        self.part, self.problem = part, problem


class MoreThanOwner(NotAllowed):
    """A key cannot do more than its owner."""

    code = "more_than_owner"

    def __init__(self, owner: str, roles: Sequence[str]) -> None:
        super().__init__(
            f"{owner} is not {' and not '.join(roles)}: grant it first, a key never does more than its owner"
        )
        self.owner, self.roles = owner, tuple(roles)


class ApprovalRequired(Conflict):
    """The call waits for people to agree; repeated once they have, it passes."""

    code = "approval_required"

    def __init__(self, approval: ApprovalRecord) -> None:
        super().__init__(f"{approval.tool} needs an approval: {approval.id} is {approval.state.value}")
        self.approval = approval


class ApprovalSpent(Conflict):
    """The approval cannot be used any more."""

    code = "approval_spent"

    def __init__(self, approval_id: str) -> None:
        super().__init__(f"{approval_id} was used, or its time is over")
        self.approval_id = approval_id


class ApprovalNotFound(NotFound):
    """No such request for approval."""

    code = "approval_not_found"

    def __init__(self, approval_id: str) -> None:
        super().__init__(f"no approval {approval_id}")
        self.approval_id = approval_id


class NotEligible(NotAllowed):
    """This person may not vote on this request."""

    code = "not_eligible"

    def __init__(self, approval_id: str, voter: str, why: str) -> None:
        super().__init__(f"{voter} may not vote on {approval_id}: {why}")
        self.approval_id, self.voter, self.why = approval_id, voter, why


class AlreadyVoted(Conflict):
    """Everybody votes once."""

    code = "already_voted"

    def __init__(self, approval_id: str, voter: str) -> None:
        super().__init__(f"{voter} has voted on {approval_id}")
        self.approval_id, self.voter = approval_id, voter


class ApprovalAnswered(Conflict):
    """The request takes no more votes."""

    code = "approval_answered"

    def __init__(self, approval_id: str, state: str) -> None:
        super().__init__(f"{approval_id} is already {state}")
        self.approval_id, self.state = approval_id, state
