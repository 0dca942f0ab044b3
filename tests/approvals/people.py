"""Users, keys and requests for approval; every argument is by keyword."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from approvals.core.errors import ApprovalRequired
from approvals.core.people import Caller
from approvals.core.requests import ApprovalRecord
from approvals.operations.approvals import cast_vote
from approvals.operations.keys import create_key
from approvals.operations.people import ensure_user
from ledger.models import GovernanceEvent
from tests.approvals.factories import NOW, begin, make_run
from tests.manifests_registry.factories import shop

ROOT = "local:root"
ASKING: Mapping[str, Any] = {"approval": "always"}


def make_user(*, name: str = "dana", roles: Sequence[str] = ("operator",)) -> str:
    person, _ = ensure_user(username=name, roles=roles, actor=ROOT, now=NOW)
    return person.username


def make_key(*, owner: str = "bot", roles: Sequence[str] = ("agent",), **fields: Any) -> str:
    """Make a user with these roles and a key of it, and return the key."""
    make_user(name=owner, roles=roles)
    return create_key(**{"owner": owner, "actor": ROOT, "now": NOW, **fields})[1]


def person(*roles: str, name: str = "dana") -> Caller:
    return Caller(name, frozenset(roles or ("operator",)))


def ask(*, run_id: str | None = None, approval: Any = "always", **fields: Any) -> ApprovalRecord:
    """Make a call that needs an approval, and return the request it waits for."""
    with pytest.raises(ApprovalRequired) as caught:
        begin(**{"run_id": run_id or make_run().id, "snapshot": shop(approval=approval), **fields})
    return caught.value.approval


def approve(*, approval: ApprovalRecord, by: Caller | None = None, **fields: Any) -> ApprovalRecord:
    usual = {"decision": "approve", "now": NOW}
    return cast_vote(approval_id=approval.id, voter=by or person(), **{**usual, **fields})


def acts() -> list[str]:
    """The kinds of the governance log, oldest first."""
    return list(GovernanceEvent.objects.order_by("seq").values_list("kind", flat=True))
