"""What the journal can be asked; everything comes back as core values, in a fixed number of queries."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from fnmatch import fnmatchcase

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet, Value
from django.db.models.fields.json import KeyTextTransform
from django.db.models.lookups import Exact

from ledger.core import chain
from ledger.core.errors import RunNotFound, StepNotFound
from ledger.core.fold import FOLDED_KINDS, Standing, contradictions, fold_steps
from ledger.core.handles import Handle, HandleLost
from ledger.core.sealing import Binding, KeyRing, SealedHandle
from ledger.core.statuses import HANDLE_EVENTS, Mode, ReadBack, RunState, SettledBy, StepState
from ledger.core.values import EventRecord, RunRecord, StepRecord
from ledger.key_ring import key_ring
from ledger.models import MAY_STAND, Event, EventData, GovernanceEvent, GovernanceHead, Run, RunSalt, Step, UndoHandle
from reversi_site.kit.keyset import Page, Place, keyset_page
from reversi_site.kit.transactions import snapshot

ATTENTION = (StepState.INTENDED, StepState.UNCERTAIN, StepState.COMPENSATING, StepState.COMPENSATION_FAILED)


def run_record(row: Run) -> RunRecord:
    """Return the run as a value."""
    return RunRecord(
        id=row.id,
        principal=row.principal,
        actor=row.actor,
        tenant=row.tenant,
        environment=row.environment,
        mode=Mode(row.mode),
        scope=tuple(row.scope),
        reason=row.reason,
        labels=dict(row.labels),
        state=RunState(row.state),
        is_rolling_back=row.is_rolling_back,
        fence=row.fence,
        next_step=row.next_step,
        opened_at=row.opened_at,
        closed_at=row.closed_at,
        active_at=row.active_at,
    )


def get_run(run_id: str) -> RunRecord:
    """Return the run; raises RunNotFound."""
    row = Run.objects.filter(pk=run_id).first()
    if row is None:
        raise RunNotFound(run_id)
    return run_record(row)


def get_last_run() -> RunRecord:
    """Return the run opened last; raises RunNotFound when there is none."""
    row = Run.objects.order_by("-opened_at", "-id").first()
    if row is None:
        raise RunNotFound("at all yet")
    return run_record(row)


def list_runs(
    *, since: datetime | None = None, actor: str | None = None, needs_attention: bool = False, limit: int = 100
) -> Sequence[RunRecord]:
    """Return runs, newest first; `actor` is a glob, `needs_attention` keeps those with a step nobody settled."""
    rows = Run.objects.order_by("-opened_at", "-id")
    if since is not None:
        rows = rows.filter(opened_at__gte=since)
    if needs_attention:
        rows = rows.filter(_needs_attention())
    found = (run_record(row) for row in rows.iterator() if actor is None or fnmatchcase(row.actor, actor))
    return [run for run, _ in zip(found, range(limit), strict=False)]


def list_open_runs(
    *, principal: str, labels: Mapping[str, str], active_after: datetime | None = None
) -> Sequence[RunRecord]:
    """Return the open runs of a principal that carry all of the labels, oldest first."""
    rows = Run.objects.filter(principal=principal, state=RunState.OPEN.value).order_by("opened_at", "id")
    rows = _labelled(rows, labels)
    if active_after is not None:
        rows = rows.filter(active_at__gt=active_after)
    return [run_record(row) for row in rows]


def find_last_run(*, principal: str, labels: Mapping[str, str]) -> RunRecord | None:
    """Return the run of a principal with all of the labels in which something happened last, whatever its state."""
    row = _labelled(Run.objects.filter(principal=principal), labels).order_by("-active_at", "-id").first()
    return None if row is None else run_record(row)


def _labelled(rows: QuerySet[Run], labels: Mapping[str, str]) -> QuerySet[Run]:
    for name, value in labels.items():
        rows = rows.filter(Exact(KeyTextTransform(name, "labels"), Value(value)))
    return rows


def _needs_attention() -> Exists:
    open_steps = Q(state__in=ATTENTION) | Q(is_disputed=True)
    unread = Q(state=StepState.COMPENSATED, read_back=ReadBack.UNVERIFIED)
    return Exists(Step.objects.filter(open_steps | unread, run=OuterRef("pk")))


def list_run_ids() -> Iterator[str]:
    """Yield the id of every run, oldest first."""
    yield from Run.objects.order_by("opened_at", "id").values_list("pk", flat=True).iterator()


def get_step(run_id: str, number: int) -> StepRecord:
    """Return one step with its handle; raises StepNotFound."""
    found = _records(Step.objects.filter(run_id=run_id, number=number), run_id, number)
    if not found:
        raise StepNotFound(run_id, number)
    return found[0]


def list_steps(run_id: str) -> Sequence[StepRecord]:
    """Return the run's steps oldest first, handles opened: two queries whatever the length."""
    return _records(Step.objects.filter(run_id=run_id).order_by("number"), run_id)


def list_step_page(*, run_id: str, place: Place | None, size: int) -> Page[StepRecord]:
    """Return one page of the run's steps, oldest first, handles opened: two queries."""
    rows = Step.objects.filter(run_id=run_id).select_related("sealed_handle")
    found = keyset_page(rows, columns=("number",), is_descending=False, place=place, size=size)
    if not found.items:
        return Page([])
    ring = key_ring()
    digests = _handle_digests(run_id, (found.items[0].number, found.items[-1].number))
    return found.of(lambda row: step_record(row, _open(row, digests.get(row.number), ring)))


def _records(rows: QuerySet[Step], run_id: str, number: int | None = None) -> list[StepRecord]:
    ring = key_ring()
    digests = _handle_digests(run_id, None if number is None else (number, number))
    return [step_record(row, _open(row, digests.get(row.number), ring)) for row in rows.select_related("sealed_handle")]


def _handle_digests(run_id: str, span: tuple[int, int] | None) -> dict[int, str]:
    """Return the digest of the handle that binds each step: the one in the latest event that carries one (D14).

    `span` are the first and the last step that is looked at; None is all.
    """
    data = EventData.objects.filter(event__run_id=run_id, event__kind__in=HANDLE_EVENTS)
    match span:
        case None:
            of_steps = data.filter(event__step__isnull=False)
        case (first, last) if first == last:
            # Only for one step is the index used to its end, on both engines.
            of_steps = data.filter(event__step=first)
        case _:
            of_steps = data.filter(event__step__range=span)
    digests: dict[int, str] = {}
    for step, body in of_steps.order_by("event__seq").values_list("event__step", "data"):
        digest = json.loads(bytes(body)).get("handle_digest")
        if step is not None and digest is not None:
            digests[step] = digest
    return digests


def _open(row: Step, digest: str | None, ring: KeyRing) -> Handle | HandleLost:
    sealed = getattr(row, "sealed_handle", None)
    if sealed is None:
        return HandleLost("the undo handle was purged")
    box = SealedHandle(sealed.key_id, bytes(sealed.nonce), bytes(sealed.ciphertext))
    return ring.open(box, Binding(row.run_id, row.number, row.manifest_checksum), digest)


def step_record(row: Step, handle: Handle | HandleLost) -> StepRecord:
    """Return the step as a value."""
    return StepRecord(
        run_id=row.run_id,
        number=row.number,
        tool=row.tool,
        state=StepState(row.state),
        effect=row.effect,
        upstream=row.upstream,
        manifest_checksum=row.manifest_checksum,
        snapshot=dict(row.snapshot),
        args_digest=row.args_digest,
        summary=row.summary,
        depends_on=tuple(row.depends_on),
        requires_steps=tuple(row.requires_steps),
        idempotency_key=row.idempotency_key,
        timeout_ms=row.timeout_ms,
        observed_by=row.observed_by,
        settled_by=SettledBy(row.settled_by) if row.settled_by else None,
        error=row.error,
        unrecoverable=row.unrecoverable,
        read_back=ReadBack(row.read_back),
        is_disputed=row.is_disputed,
        is_by_hand=row.is_by_hand,
        is_undo_outcome_unknown=row.is_undo_outcome_unknown,
        is_contract_rejected=row.is_contract_rejected,
        intended_at=row.intended_at,
        settled_at=row.settled_at,
        handle=handle,
    )


def get_keyed_digest(run_id: str) -> Callable[[bytes], str]:
    """Return the run's keyed digest for values that are compared and not kept; raises RunNotFound without a salt."""
    salt = RunSalt.objects.filter(run_id=run_id).first()
    if salt is None:
        raise RunNotFound(run_id)
    key = bytes(salt.salt)
    return lambda data: hmac.new(key, data, hashlib.sha256).hexdigest()


def find_standing_call(call_key: str) -> tuple[str, int] | None:
    """Return run and number of the standing step that holds the call key."""
    found = Step.objects.filter(MAY_STAND, call_key=call_key).values_list("run_id", "number").first()
    return None if found is None else (found[0], found[1])


def list_standing_successes(run_id: str, tools: Sequence[str]) -> dict[str, int]:
    """Return, for each of the tools that has one, the number of its latest standing success in the run.

    One that is disputed is none: two parties contradict each other about it.
    """
    standing = (StepState.SUCCEEDED, StepState.COMPENSATION_FAILED)
    steps = Step.objects.filter(run_id=run_id, state__in=standing, is_disputed=False).order_by("-number")
    latest = ((tool, steps.filter(tool=tool).values_list("number", flat=True).first()) for tool in tools)
    return {tool: number for tool, number in latest if number is not None}


def list_calls_in_flight() -> Iterator[tuple[RunRecord, str]]:
    """Yield the run and tool of every call that was announced and not settled yet."""
    for row in Step.objects.filter(state=StepState.INTENDED).select_related("run").iterator():
        yield run_record(row.run), row.tool


def list_overdue(*, now: datetime, grace_ms: int, limit: int) -> Sequence[tuple[str, int]]:
    """Return run and number of the calls whose time-out plus grace has passed."""
    rows = Step.objects.filter(state=StepState.INTENDED).order_by("intended_at")
    columns = rows.values_list("run_id", "number", "intended_at", "timeout_ms")
    late = (
        (run_id, number)
        for run_id, number, intended_at, timeout_ms in columns.iterator()
        if (now - intended_at).total_seconds() * 1000 > timeout_ms + grace_ms
    )
    return [place for place, _ in zip(late, range(limit), strict=False)]


def list_events(run_id: str) -> Sequence[EventRecord]:
    """Return the run's events in order, data included where it is still kept."""
    rows = Event.objects.filter(run_id=run_id).order_by("seq").select_related("payload")
    return [event_record(row) for row in rows]


def event_record(row: Event) -> EventRecord:
    """Return the event as a value."""
    payload = getattr(row, "payload", None)
    return EventRecord(
        run_id=row.run_id,
        seq=row.seq,
        kind=row.kind,
        at=row.at,
        actor=row.actor,
        step=row.step,
        data_hash=row.data_hash,
        prev=row.prev,
        hash=row.hash,
        data=None if payload is None else json.loads(bytes(payload.data)),
    )


def check_run_chain(run_id: str) -> chain.ChainReport:
    """Re-compute the run's chain, and compare its steps' rows with it, in one moment.

    Any edited, missing or reordered event, and any row that says something else than the events, is named in
    `problems`.
    """
    with snapshot():
        report = _check_events(run_id)
        rows = find_contradictions(run_id)
    problems = (f"step {number}: {words}" for number, words in rows.items())
    return replace(report, problems=(*report.problems, *problems))


def find_contradictions(run_id: str) -> Mapping[int, str]:
    """Say of each step of the run whose row its events contradict in what; two queries in the caller's transaction."""
    events = Event.objects.filter(run_id=run_id, step__isnull=False, kind__in=FOLDED_KINDS).order_by("seq")
    columns = ("number", "state", "read_back", "is_disputed")
    rows = Step.objects.filter(run_id=run_id).values_list(*columns)
    return contradictions(
        fold_steps(events.values_list("kind", "step").iterator(chunk_size=1000)),
        {number: Standing(StepState(state), ReadBack(seen), disputed) for number, state, seen, disputed in rows},
    )


def _check_events(run_id: str) -> chain.ChainReport:
    run = Run.objects.filter(pk=run_id).first()
    if run is None:
        raise RunNotFound(run_id)
    salt = RunSalt.objects.filter(run=run).first()
    rows = Event.objects.filter(run=run).order_by("seq").select_related("payload")
    links = (_link(row) for row in rows.iterator(chunk_size=1000))
    return chain.check_chain(links, chain.Head(run.next_seq, run.head), bytes(salt.salt) if salt else None)


def _link(row: Event) -> chain.Link:
    payload = getattr(row, "payload", None)
    fields = {
        "run": row.run_id,
        "seq": row.seq,
        "kind": row.kind,
        "at": row.at,
        "actor": row.actor,
        "step": row.step,
        "data_hash": row.data_hash,
    }
    return chain.Link(fields, row.prev, row.hash, None if payload is None else bytes(payload.data))


def check_governance_chain() -> chain.ChainReport:
    """Re-compute the governance log's chain."""
    head = GovernanceHead.objects.get(pk=1)
    rows = GovernanceEvent.objects.order_by("seq")
    links = (_governance_link(row) for row in rows.iterator(chunk_size=1000))
    return chain.check_chain(links, chain.Head(head.next_seq, head.head), b"")


def _governance_link(row: GovernanceEvent) -> chain.Link:
    fields = {"seq": row.seq, "kind": row.kind, "at": row.at, "actor": row.actor, "data_hash": row.data_hash}
    return chain.Link(fields, row.prev, row.hash, bytes(row.data))


def list_lost_key_ids(*, limit: int = 5) -> Sequence[str]:
    """Return ids of keys that undo handles were sealed with and that are not in the ring; looks at every handle."""
    lost = UndoHandle.objects.exclude(key_id__in=list(settings.REVERSI_LEDGER_KEYS))
    return list(lost.order_by("key_id").values_list("key_id", flat=True).distinct()[:limit])


def list_upstreams(run_id: str) -> Sequence[str]:
    """Return the upstreams that the calls of a run went to, each once."""
    return list(Step.objects.filter(run_id=run_id).order_by("upstream").values_list("upstream", flat=True).distinct())
