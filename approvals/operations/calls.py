"""Begin and complete a call: the two commits of a step (D12).

`begin_call` decides and announces: everything that speaks against the call is looked at under the lock of the run,
in the transaction that commits `intended`, so that nothing can come between the look and the commit. Halts are read
there, fresh. A call whose manifest reads the state before is judged once more earlier, so that nobody is sent to read
for a call that is refused anyway. A call that people must agree to opens a request, or uses up the one that was
approved, in that same transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NoReturn, assert_never

from django.conf import settings
from django.db import IntegrityError

from approvals.core.before import NOT_DECLARED, BeforeAnswer, Captured, capture, read_arguments, unread
from approvals.core.doors import Request, read_request, read_tool, require_earlier
from approvals.core.errors import ApprovalRequired, BeforeRequired, CallBlocked
from approvals.core.gate import Admission, enforced
from approvals.core.redaction import hide
from approvals.core.upstreams import upstream_of as default_upstream
from approvals.core.violations import Code, Violation
from approvals.operations.admission import Candidate, judge
from approvals.operations.completion import complete_call
from approvals.operations.intents import build_intent
from approvals.operations.requests import Denied, Granted, Waiting, ask, use_up
from approvals.queries import get_approval
from ledger.core.errors import CallKeyTaken, ForeignRun, RunClosed
from ledger.core.statuses import Mode, RunState
from ledger.core.text import make_visible
from ledger.core.values import RunRecord, StepRecord
from ledger.operations.journal import lock_run
from ledger.operations.steps import record_blocked, record_intent
from ledger.queries import get_run, run_record
from manifests_registry.core.snapshot import Snapshot
from manifests_registry.operations.documents import ensure_documents
from manifests_registry.queries import current_snapshot
from reversi_sdk.model import Manifest
from reversi_sdk.references import Reference, Unavailable
from reversi_site.kit.transactions import durable

__all__ = ["Begun", "begin_call", "complete_call"]

# Each turn another call took the key and gave it up again; the last turn's refusal is reported as it is.
TURNS = 5
FAILURE = 500


@dataclass(frozen=True, slots=True)
class Begun:
    """A call that may be made now: its step is committed as `intended`.

    `manifest` is None for a call that no approved manifest covers. `args` are the arguments as they were journaled;
    what stands at `redacted` is never shown, a draft's paths included.
    """

    step: StepRecord
    manifest: Manifest | None
    args: Mapping[str, Any]
    idempotency_key: str | None
    timeout_ms: int
    notes: tuple[str, ...]
    violations: tuple[Violation, ...]
    actor: str
    redacted: tuple[Reference, ...]


class _Refused(Exception):
    """Ends the transaction of a call that is not announced."""

    def __init__(self, run: RunRecord, violations: tuple[Violation, ...]) -> None:
        super().__init__()
        self.run, self.violations = run, violations


def begin_call(
    *,
    run_id: str,
    principal: str,
    tool: str,
    args: Mapping[str, Any],
    now: datetime,
    observed_by: str,
    reason: str = "",
    depends_on: Sequence[int] = (),
    idempotency_key: str | None = None,
    before: BeforeAnswer | None = None,
    upstream_of: Callable[[str], str] = default_upstream,
    snapshot: Snapshot | None = None,
) -> Begun:
    """Announce a call, durably, before it is made.

    Raises CallBlocked when violations block it (journaled), ApprovalRequired when people must agree first,
    BeforeRequired when the state before must be read first, RunClosed, ForeignRun and RunNotFound for the run, and an
    InvalidInput for a malformed call. `snapshot` takes the place of the configured manifests.
    """
    registry = current_snapshot(settings.CONFIGURATION.manifests) if snapshot is None else snapshot
    entry = registry.get(read_tool(tool))
    manifest = None if entry is None else enforced(entry.manifest)
    request = read_request(
        run_id=run_id,
        principal=principal,
        tool=tool,
        args=args,
        reason=reason,
        depends_on=depends_on,
        idempotency_key=idempotency_key,
        manifest=manifest,
    )
    involved = () if entry is None else registry.involved(entry)
    candidate = Candidate(request, entry, manifest, involved, observed_by, upstream_of(request.tool))
    captured = _presentable(_capture(candidate, before, now), candidate)
    ensure_documents(entries=involved)
    return _announce(candidate, captured, now)


def _capture(candidate: Candidate, answer: BeforeAnswer | None, now: datetime) -> Captured:
    manifest = candidate.manifest
    if manifest is None or manifest.before is None:
        return NOT_DECLARED
    if answer is not None:
        return capture(manifest, answer, candidate.request.args)
    _require_admission(candidate, now)
    arguments = read_arguments(manifest.before, candidate.request.args)
    if isinstance(arguments, Unavailable):
        return unread(arguments.reason)
    raise BeforeRequired(manifest.before.tool, arguments.values)


def _presentable(captured: Captured, candidate: Candidate) -> Captured:
    # The text of a failed read comes from a tool, and may repeat what it was called with.
    if captured.failure is None:
        return captured
    shown = hide(captured.failure, candidate.request.args, candidate.redacted)
    return replace(captured, failure=make_visible(shown, limit=FAILURE))


def _require_admission(candidate: Candidate, now: datetime) -> None:
    run = _accepted(get_run(candidate.request.run_id), candidate.request)
    admission = judge(candidate, run)
    if admission.blocking:
        _refuse(candidate, run, admission.blocking, now)
    if admission.needs_approval:
        _require_approval(candidate, now)


def _require_approval(candidate: Candidate, now: datetime) -> None:
    """Raise unless people agreed to the call; the approval is used up only by the step."""
    ensure_documents(entries=candidate.involved)
    with durable():
        locked = lock_run(candidate.request.run_id)
        run = _accepted(run_record(locked.row), candidate.request)
        answer = ask(run=locked, candidate=candidate, now=now)
    match answer:
        case Waiting(approval_id=approval_id):
            raise ApprovalRequired(get_approval(approval_id, now=now))
        case Denied():
            _refuse(candidate, run, (answer.violation,), now)
        case Granted():
            return
        case _:
            assert_never(answer)


def _accepted(run: RunRecord, request: Request) -> RunRecord:
    if run.principal != request.principal:
        raise ForeignRun(run.id)
    if run.state is RunState.CLOSED:
        raise RunClosed(run.id)
    require_earlier(request.depends_on, run.next_step)
    return run


def _announce(candidate: Candidate, captured: Captured, now: datetime) -> Begun:
    for _ in range(TURNS - 1):
        # Another process announced the same call since we looked; the next look sees its step.
        with suppress(CallKeyTaken, IntegrityError):
            return _commit_or_refuse(candidate, captured, now)
    return _commit_or_refuse(candidate, captured, now)


def _commit_or_refuse(candidate: Candidate, captured: Captured, now: datetime) -> Begun:
    try:
        committed = _commit(candidate, captured, now)
    except _Refused as refused:
        _refuse(candidate, refused.run, refused.violations, now)
    if isinstance(committed, Waiting):
        raise ApprovalRequired(get_approval(committed.approval_id, now=now))
    return committed


def _commit(candidate: Candidate, captured: Captured, now: datetime) -> Begun | Waiting:
    with durable():
        locked = lock_run(candidate.request.run_id)
        run = _accepted(run_record(locked.row), candidate.request)
        admission = judge(candidate, run)
        answer = ask(run=locked, candidate=candidate, now=now) if admission.needs_approval else None
        if isinstance(answer, Waiting):
            # The block ends well: the request that was just opened must stay.
            return answer
        if isinstance(answer, Denied):
            raise _Refused(run, (answer.violation,))
        admission = _with_capture(admission, captured, candidate.manifest, run.mode)
        if admission.blocking:
            raise _Refused(run, admission.blocking)
        intent = build_intent(candidate, run, admission, captured)
        step = record_intent(run=locked, intent=intent, actor=run.agent, now=now)
        if answer is not None:
            use_up(run=locked, granted=answer, number=step.number, now=now)
    return Begun(
        step=step,
        manifest=candidate.manifest,
        args=candidate.request.args,
        idempotency_key=intent.idempotency_key,
        timeout_ms=intent.timeout_ms,
        notes=admission.notes,
        violations=admission.violations,
        actor=run.agent,
        redacted=candidate.redacted,
    )


def _with_capture(admission: Admission, captured: Captured, manifest: Manifest | None, mode: Mode) -> Admission:
    proceeds = manifest is not None and manifest.before is not None and manifest.before.proceeds_on_missing
    if captured.failure is None or proceeds or admission.blocking:
        return admission
    return admission.adding(Violation(Code.BEFORE_FAILED, captured.failure), mode)


def _refuse(candidate: Candidate, run: RunRecord, violations: tuple[Violation, ...], now: datetime) -> NoReturn:
    tool = candidate.request.tool
    body = [violation.to_json() for violation in violations]
    record_blocked(run_id=run.id, tool=tool, violations=body, actor=run.agent, now=now)
    # Without the inner signal, which would only lengthen the caller's traceback.
    raise CallBlocked(run.id, tool, violations) from None
