"""What a client can do, as flows: one place for both clients, so that they cannot disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reversi_sdk.client import routes
from reversi_sdk.client.approving import answered
from reversi_sdk.client.calling import Call, Made
from reversi_sdk.client.compensating import Retrying, Undoing, roll_back_here
from reversi_sdk.client.delivery import Delivery
from reversi_sdk.client.effects import Flow
from reversi_sdk.client.functions import Compensate, Execute, Reader, Verify, executing
from reversi_sdk.client.jobs import OnProgress, finished_job
from reversi_sdk.client.outgoing import ABSENT, sendable
from reversi_sdk.client.pages import all_pages
from reversi_sdk.client.wire import Document, Request
from reversi_sdk.errors import InvalidInput, NotFound

Step = int | Made


def opened(delivery: Delivery, fields: Mapping[str, Any]) -> Flow[Document]:
    """Open a run, or continue it."""
    run_id = fields.get("id")
    document = yield from delivery.documented(routes.open_run(fields))
    if run_id is not None and document.get("id") != run_id:
        raise NotFound(f"the server opened {document.get('id')} instead of {run_id}")
    return document


def run_fields(
    *,
    id: str | None,
    actor: str | None,
    tenant: str | None,
    environment: str | None,
    mode: str | None,
    scope: Sequence[str],
    reason: str,
    labels: Mapping[str, str] | None,
) -> Document:
    """Return the body that opens a run."""
    if isinstance(scope, str):
        raise InvalidInput("scope: must be a list of permissions, not one text")
    return {
        "id": id,
        "actor": actor,
        "tenant": tenant,
        "environment": environment,
        "mode": mode,
        "scope": list(scope),
        "reason": reason or None,
        "labels": None if labels is None else dict(labels),
    }


def planned_call(
    run_id: str,
    tool: str,
    args: Mapping[str, Any] | None,
    *,
    execute: Execute,
    reader: Reader | None,
    reason: str,
    depends_on: Sequence[Step],
    idempotency_key: str | None,
    wait: float | bool | None,
) -> Call:
    """Return the call that a caller described; raises before anything is announced."""
    return Call(
        run_id=run_id,
        tool=tool,
        args=dict(args or {}),
        execute=executing(execute),
        reader=reader,
        reason=reason,
        depends_on=tuple(step_number(step) for step in depends_on),
        idempotency_key=idempotency_key,
        wait_ms=waiting_ms(wait),
    )


def step_number(step: Step) -> int:
    """Return the number of a step that was given by number or as the call that made it."""
    return step.step if isinstance(step, Made) else step


def waiting_ms(wait: float | bool | None) -> int | None:
    """Return how long to wait for people: None and False not at all, True as long as it takes."""
    if wait is True:
        return None
    return 0 if not wait else max(0, round(wait * 1000))


@dataclass(frozen=True, slots=True)
class RollbackOptions:
    """How a rollback is to be made; with `compensate` by this process, else by the server."""

    compensate: Compensate | None = None
    verify: Verify | None = None
    verifier: Reader | None = None
    retry: Mapping[str, int] | None = None
    steps: Sequence[Step] | None = None
    to_step: Step | None = None
    digest: str | None = None
    approve_compensations: bool = False
    overwrite: bool = False
    close: bool = False
    on_progress: OnProgress | None = None
    timeout: float = 900.0

    @property
    def selection(self) -> Document:
        """The part of the run that is meant, as a query carries it."""
        return selection(self.steps, self.to_step)


def selection(steps: Sequence[Step] | None, to_step: Step | None) -> Document:
    """Return the part of a run that is meant, as a query carries it."""
    numbers = None if steps is None else [step_number(step) for step in steps]
    return routes.selection(numbers, None if to_step is None else step_number(to_step))


def rolled_back(delivery: Delivery, run_id: str, worker: str, options: RollbackOptions) -> Flow[Document]:
    """Roll back and return the report."""
    retrying = Retrying.from_options(options.retry)
    if options.compensate is None:
        return (yield from _by_the_server(delivery, run_id, retrying, options))
    if options.approve_compensations or options.overwrite:
        raise InvalidInput("approve_compensations and overwrite are for rollbacks that the server makes")
    undoing = Undoing(
        run_id=run_id,
        worker=worker,
        compensate=options.compensate,
        retrying=retrying,
        verify=options.verify,
        verifier=options.verifier,
        on_progress=options.on_progress,
        digest=options.digest,
    )
    report = yield from roll_back_here(delivery, undoing, options.selection)
    if options.close:
        yield from delivery.documented(routes.close_run(run_id))
    return report


def _by_the_server(delivery: Delivery, run_id: str, retrying: Retrying, options: RollbackOptions) -> Flow[Document]:
    if options.verify is not None or options.verifier is not None:
        raise InvalidInput("verify and verifier are for rollbacks that this process makes: pass compensate too")
    body: Document = {
        "digest": options.digest,
        "retries": None if options.retry is None else retrying.attempts,
        "approve_compensations": options.approve_compensations or None,
        "steps": None if options.steps is None else [step_number(step) for step in options.steps],
        "to_step": None if options.to_step is None else step_number(options.to_step),
        "overwrite": options.overwrite or None,
        "close": options.close or None,
    }
    job = yield from _job(delivery, run_id, routes.start_rollback(run_id, body), options.on_progress, options.timeout)
    report: Document = job.get("report") or {}
    return report


def verified(delivery: Delivery, run_id: str, on_progress: OnProgress | None, timeout: float) -> Flow[Document]:
    """Have the server make the open read-backs and return the report."""
    job = yield from _job(delivery, run_id, routes.start_verification(run_id), on_progress, timeout)
    report: Document = job.get("report") or {}
    return report


def _job(
    delivery: Delivery, run_id: str, start: Request, on_progress: OnProgress | None, timeout: float
) -> Flow[Document]:
    timeout_ms = round(timeout * 1000)
    return finished_job(delivery, run_id, start, on_progress=on_progress, timeout_ms=timeout_ms)


def resolved(delivery: Delivery, run_id: str, step: Step, *, status: str, note: str, result: Any) -> Flow[Document]:
    """Settle a step by a person's word."""
    fields: Document = {"status": status, "note": note}
    shown = ABSENT if result is ABSENT else sendable(result)
    if result is not ABSENT and shown is ABSENT:
        raise InvalidInput("result: is not JSON")
    body = fields if shown is ABSENT else {**fields, "result": shown}
    return delivery.documented(routes.resolve_step(run_id, step_number(step), body))


def approval(delivery: Delivery, approval_id: str, wait: float) -> Flow[Document]:
    """Return an approval request, answered if that happens within `wait` seconds."""
    shown = yield from delivery.documented(routes.get_approval(approval_id))
    return (yield from answered(delivery, shown, delivery.world.now_ms() + round(wait * 1000)))


def listed(delivery: Delivery, request: Request, most: int | None = None) -> Flow[list[Document]]:
    """Return what a list holds."""
    return all_pages(delivery, request, most)
