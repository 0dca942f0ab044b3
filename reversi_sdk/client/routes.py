"""The requests of the API, built from what a caller says; nothing here knows how they are sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from reversi_sdk.client.wire import Document, Request

RUNS = "/v1/runs"


def open_run(fields: Mapping[str, Any]) -> Request:
    """Open a run, or continue the one of that id."""
    return _post(RUNS, _given(fields))


def get_run(run_id: str) -> Request:
    """Look at a run."""
    return Request("GET", _run(run_id))


def close_run(run_id: str) -> Request:
    """Close a run: it takes no more calls."""
    return _post(f"{_run(run_id)}/close", {})


def list_runs(filters: Mapping[str, Any]) -> Request:
    """List runs."""
    return Request("GET", RUNS, params=_params(filters))


def list_steps(run_id: str) -> Request:
    """List the steps of a run."""
    return Request("GET", f"{_run(run_id)}/steps")


def list_events(run_id: str) -> Request:
    """List the journal entries of a run."""
    return Request("GET", f"{_run(run_id)}/events")


def get_step(run_id: str, step: int) -> Request:
    """Look at a step."""
    return Request("GET", _step(run_id, step))


def following(request: Request, next_page: str) -> Request:
    """Return the request for the next page; only the query of what the server said is used."""
    return Request("GET", request.path, params=tuple(parse_qsl(urlsplit(next_page).query, keep_blank_values=True)))


def begin_call(run_id: str, fields: Mapping[str, Any], before: Document | None) -> Request:
    """Announce a call."""
    return _post(f"{_run(run_id)}/calls", _given({**fields, "before": before}))


def complete_call(run_id: str, step: int, outcome: Mapping[str, Any]) -> Request:
    """Tell how a call ended."""
    return _post(f"{_step(run_id, step)}/complete", outcome)


def get_plan(run_id: str, selection: Mapping[str, Any]) -> Request:
    """Ask what a rollback would do."""
    return Request("GET", f"{_run(run_id)}/plan", params=_params(selection))


def get_report(run_id: str, selection: Mapping[str, Any]) -> Request:
    """Ask how the steps stand after what was undone."""
    return Request("GET", f"{_run(run_id)}/report", params=_params(selection))


def start_rollback(run_id: str, options: Mapping[str, Any]) -> Request:
    """Have the server roll back."""
    return _post(f"{_run(run_id)}/rollback", {"confirm": True, **_given(options)})


def get_rollback(run_id: str) -> Request:
    """Look at the run's last job."""
    return Request("GET", f"{_run(run_id)}/rollback")


def start_verification(run_id: str) -> Request:
    """Have the server make the open read-backs."""
    return _post(f"{_run(run_id)}/verify", {})


def resolve_step(run_id: str, step: int, fields: Mapping[str, Any]) -> Request:
    """Settle a step by a person's word."""
    return _post(f"{_step(run_id, step)}/resolve", fields)


def reconcile(run_id: str, answers: Sequence[Mapping[str, Any]]) -> Request:
    """Settle steps by what was found downstream."""
    return _post(f"{_run(run_id)}/reconcile", {"answers": list(answers)} if answers else {})


def begin_compensation(run_id: str, step: int, worker: str) -> Request:
    """Take an undo to run."""
    return _post(f"{_step(run_id, step)}/compensation", {"worker": worker})


def complete_compensation(run_id: str, step: int, outcome: Mapping[str, Any]) -> Request:
    """Tell how an undo ended."""
    return _post(f"{_step(run_id, step)}/compensation/complete", outcome)


def list_approvals(filters: Mapping[str, Any]) -> Request:
    """List approval requests."""
    return Request("GET", "/v1/approvals", params=_params(filters))


def get_approval(approval_id: str, wait_seconds: int = 0) -> Request:
    """Look at an approval request, or wait until it is answered."""
    params = (("wait", str(wait_seconds)),) if wait_seconds else ()
    return Request("GET", f"/v1/approvals/{_part(approval_id)}", params=params, extra_wait_ms=wait_seconds * 1000)


def vote(approval_id: str, decision: str, reason: str) -> Request:
    """Approve or deny."""
    return _post(f"/v1/approvals/{_part(approval_id)}/{decision}", {"reason": reason} if reason else {})


def halt(reason: str, scope: Mapping[str, str]) -> Request:
    """Block new calls."""
    return _post("/v1/halt", {"reason": reason, **({"scope": dict(scope)} if scope else {})})


def resume(halt_id: str | None) -> Request:
    """Lift one halt, or all."""
    return _post("/v1/resume", {} if halt_id is None else {"id": halt_id})


def list_halts() -> Request:
    """List halts."""
    return Request("GET", "/v1/halts")


def selection(steps: Sequence[int] | None, to_step: int | None) -> dict[str, Any]:
    """Return the part of a run that is meant, as a query carries it."""
    return {"steps": None if steps is None else ",".join(map(str, steps)), "to_step": to_step}


def _post(path: str, body: Mapping[str, Any]) -> Request:
    return Request("POST", path, body=body)


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _params(fields: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((name, _param(value)) for name, value in fields.items() if value is not None)


def _param(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _part(text: str) -> str:
    return quote(text, safe="")


def _run(run_id: str) -> str:
    return f"{RUNS}/{_part(run_id)}"


def _step(run_id: str, step: int) -> str:
    return f"{_run(run_id)}/steps/{int(step)}"
