"""The runs that a gateway opens for its clients: the current one of each principal and client, and others (D11).

The current run is continued by every process in which the same client of the same principal calls under the same
terms, until nothing has happened in it for the idle limit and no call in it waits for people to agree; then it is
closed, and the next call opens another. Terms
are what a run is opened with: a run of other terms, such as the wider ones of another key, is never continued.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.conf import settings

from approvals.core.people import UNLIMITED, Act, Caller, Limits, RunFields, narrow, require
from approvals.operations.runs import open_new_run_for, open_run_for
from approvals.queries import awaits_approved_call
from gateway.core.run_names import client_name
from ledger.core.statuses import Mode
from ledger.core.values import RunRecord
from ledger.operations.journal import lock_run
from ledger.operations.runs import close_locked_run
from ledger.queries import find_last_run, list_open_runs
from reversi_sdk.canonical import canonical_bytes
from reversi_sdk.errors import NotFound
from reversi_site.kit.transactions import durable, take_turns

# Who closes a run that nobody closed.
IDLE = "reversi:idle"
EVERYTHING = ("*",)
CLIENT_LABEL, ROLE_LABEL, CURRENT = "client", "gateway", "current"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTerms:
    """What a client's runs are opened with.

    What is None is as the caller's key fixes it; else the actor is the client, and mode and scope are the widest that
    the caller may have.
    """

    client: str
    actor: str | None = None
    tenant: str | None = None
    environment: str | None = None
    mode: str | None = None
    scope: tuple[str, ...] | None = None
    reason: str = ""


def current_run(
    *, caller: Caller, terms: RunTerms, now: datetime, idle_limit_ms: int | None = None
) -> tuple[RunRecord, bool]:
    """Return the current run of the caller's client, opened if there is none; the flag says whether it is new.

    However many processes ask at once, they get the same one. Raises NotPermitted, and WiderThanKey for terms that are
    wider than the caller's key.
    """
    require(caller, Act.OPEN_RUN)
    fields = _fields(caller, terms)
    limit = timedelta(milliseconds=settings.GATEWAY_IDLE_RUN_MS if idle_limit_ms is None else idle_limit_ms)
    labels = {**_labels(terms), ROLE_LABEL: CURRENT}
    found = _continued(caller, fields, labels, active_after=now - limit, now=now)
    if found is not None:
        return found, False
    with durable():
        take_turns(f"gateway run: {canonical_bytes([caller.username, labels[CLIENT_LABEL]]).decode()}")
        # Another process may have opened it since we looked.
        found = _continued(caller, fields, labels, active_after=now - limit, now=now)
        if found is not None:
            return found, False
        _close_idle(caller, fields, labels, now)
        run = open_new_run_for(caller=caller, fields=fields, now=now, reason=terms.reason, labels=labels)
    return run, True


class NoPresentRun(NotFound):
    """No run takes the client's calls now."""

    code = "no_run"

    def __init__(self, last: RunRecord | None) -> None:
        past = "none was opened yet" if last is None else f"its last one was {last.id}, with {last.next_step} steps"
        super().__init__(f"no run takes the calls of this client now; {past}")
        self.last = last


def present_run(*, caller: Caller, terms: RunTerms, now: datetime, idle_limit_ms: int | None = None) -> RunRecord:
    """Return what current_run would continue; opens and closes nothing.

    Raises NoPresentRun where there is nothing to continue: of a run that ended nobody can tell whether it is meant.
    """
    limit = timedelta(milliseconds=settings.GATEWAY_IDLE_RUN_MS if idle_limit_ms is None else idle_limit_ms)
    labels = _labels(terms)
    current = {**labels, ROLE_LABEL: CURRENT}
    found = _continued(caller, _fields(caller, terms), current, active_after=now - limit, now=now)
    if found is None:
        raise NoPresentRun(find_last_run(principal=caller.username, labels=labels))
    return found


def open_another_run(*, caller: Caller, terms: RunTerms, now: datetime) -> RunRecord:
    """Open a run that only who knows its id continues; raises what current_run does."""
    fields = _fields(caller, terms)
    with durable():
        return open_new_run_for(caller=caller, fields=fields, now=now, reason=terms.reason, labels=_labels(terms))


def open_named_run(*, caller: Caller, run_id: str, terms: RunTerms, now: datetime) -> tuple[RunRecord, bool]:
    """Continue the run of that id, or open it; the flag says whether it is new.

    Raises BadRunId, ForeignRun, NotPermitted, and WiderThanKey also for a run that is wider than the caller's key or
    the terms allow.
    """
    fields = _fields(caller, terms)
    return open_run_for(
        caller=_bounded(caller, terms),
        now=now,
        run_id=run_id,
        actor=fields.actor,
        tenant=fields.tenant,
        environment=fields.environment,
        mode=fields.mode,
        scope=fields.scope,
        reason=terms.reason,
        labels=_labels(terms),
    )


def _fields(caller: Caller, terms: RunTerms) -> RunFields:
    limits = caller.limits
    is_actor_fixed = limits is not None and limits.actor is not None
    widest = EVERYTHING if limits is None else limits.scope
    return narrow(
        limits,
        actor=client_name(terms.client) if terms.actor is None and not is_actor_fixed else terms.actor,
        tenant=terms.tenant,
        environment=terms.environment,
        mode=terms.mode,
        scope=widest if terms.scope is None else terms.scope,
    )


def _bounded(caller: Caller, terms: RunTerms) -> Caller:
    """Return the caller with the terms as limits where no key sets any: naming a run must not lead out of them."""
    if caller.limits is not None or (terms.mode is None and terms.scope is None):
        return caller
    modes = (Mode.ENFORCE.value,) if terms.mode == Mode.ENFORCE else UNLIMITED.modes
    return replace(caller, limits=Limits(scope=EVERYTHING if terms.scope is None else terms.scope, modes=modes))


def _labels(terms: RunTerms) -> dict[str, str]:
    return {CLIENT_LABEL: client_name(terms.client)}


def _continued(
    caller: Caller, fields: RunFields, labels: Mapping[str, str], *, active_after: datetime, now: datetime
) -> RunRecord | None:
    runs = list_open_runs(principal=caller.username, labels=labels, active_after=active_after)
    found = next((run for run in runs if _is_on(run, fields)), None)
    return found or _awaited(caller, fields, labels, now)


def _awaited(caller: Caller, fields: RunFields, labels: Mapping[str, str], now: datetime) -> RunRecord | None:
    """Return the run in which a call waits for people: they take longer than agents, and agree to no other run's."""
    runs = list_open_runs(principal=caller.username, labels=labels)
    return next((run for run in runs if _is_on(run, fields) and awaits_approved_call(run.id, now=now)), None)


def _close_idle(caller: Caller, fields: RunFields, labels: Mapping[str, str], now: datetime) -> None:
    for run in list_open_runs(principal=caller.username, labels=labels):
        if _is_on(run, fields):
            close_locked_run(run=lock_run(run.id), actor=IDLE, now=now)


def _is_on(run: RunRecord, fields: RunFields) -> bool:
    """Tell whether the run was opened with these fields."""
    return (run.actor, run.tenant, run.environment, run.mode.value, run.scope) == (
        fields.actor,
        fields.tenant,
        fields.environment,
        fields.mode,
        fields.scope,
    )
