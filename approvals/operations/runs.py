"""Open and close runs on somebody's behalf: within what the caller may do and the caller's key allows (D11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime

from approvals.core.people import Act, Caller, RunFields, narrow, require, require_on_run
from approvals.queries import get_run_for
from ledger.core.values import RunRecord
from ledger.operations.runs import close_run, open_new_run, open_run


def open_run_for(
    *,
    caller: Caller,
    now: datetime,
    run_id: str | None = None,
    actor: str | None = None,
    tenant: str | None = None,
    environment: str | None = None,
    mode: str | None = None,
    scope: Sequence[str] = (),
    reason: str = "",
    labels: Mapping[str, str] | None = None,
) -> tuple[RunRecord, bool]:
    """Open a run of the caller's, or continue it unchanged; the flag says whether it is new.

    Raises NotPermitted, WiderThanKey (also for an existing run that the caller's key was not made for), ForeignRun.
    """
    require(caller, Act.OPEN_RUN)
    fields = narrow(caller.limits, actor=actor, tenant=tenant, environment=environment, mode=mode, scope=scope)
    run, is_new = open_run(
        principal=caller.username,
        now=now,
        run_id=run_id,
        actor=fields.actor,
        tenant=fields.tenant,
        environment=fields.environment,
        mode=fields.mode,
        scope=fields.scope,
        reason=reason,
        labels=labels,
    )
    require_on_run(caller, run, own=Act.OPEN_RUN, others=None)
    return run, is_new


def open_new_run_for(
    *, caller: Caller, fields: RunFields, now: datetime, reason: str = "", labels: Mapping[str, str] | None = None
) -> RunRecord:
    """Open a run of the caller's under an id of its own. Needs the caller's transaction.

    Raises NotPermitted, and WiderThanKey where the fields are wider than the key.
    """
    require(caller, Act.OPEN_RUN)
    within = narrow(caller.limits, **asdict(fields))
    return open_new_run(
        principal=caller.username,
        now=now,
        actor=within.actor,
        tenant=within.tenant,
        environment=within.environment,
        mode=within.mode,
        scope=within.scope,
        reason=reason,
        labels=labels,
    )


def close_run_for(*, caller: Caller, run_id: str, now: datetime) -> RunRecord:
    """Close the caller's own run, or anybody's where the caller may; raises ForeignRun and NotPermitted."""
    get_run_for(caller=caller, run_id=run_id, own=Act.CLOSE_OWN_RUN, others=Act.CLOSE_ANY_RUN)
    return close_run(run_id=run_id, actor=caller.username, now=now)
