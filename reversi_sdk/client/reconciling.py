"""Settling unresolved steps by what a caller's probe finds downstream (D25)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from reversi_sdk.client import routes
from reversi_sdk.client.delivery import Delivery
from reversi_sdk.client.effects import Flow, Invoke
from reversi_sdk.client.functions import Probe
from reversi_sdk.client.outgoing import ABSENT, sendable
from reversi_sdk.client.pages import all_pages
from reversi_sdk.client.wire import Document
from reversi_sdk.errors import InvalidInput

UNRESOLVED = ("intended", "uncertain")
MEMBERS = frozenset({"status", "result", "note"})
DEFAULT_NOTE = "found by the run's own probe"


def reconcile_run(delivery: Delivery, run_id: str, probe: Probe | None) -> Flow[Document]:
    """Ask the probe about each unresolved step and settle those that it answers; returns `{settled, open}`."""
    answers: list[Document] = []
    if probe is not None:
        steps = yield from all_pages(delivery, routes.list_steps(run_id))
        for step in steps:
            if step.get("state") in UNRESOLVED:
                found = yield Invoke(partial(probe, step))
                answers += [] if found is None else [_answer(step, found)]
    return (yield from delivery.documented(routes.reconcile(run_id, answers)))


def _answer(step: Document, found: Any) -> Document:
    """Read what a probe returned: a status, or `{status, result?, note?}`."""
    given = {"status": found} if isinstance(found, str) else found
    if not isinstance(given, Mapping) or not given.keys() <= MEMBERS or "status" not in given:
        raise InvalidInput("a probe returns None, a status, or an object of status, result and note")
    answer = {"step": step_number(step), "status": str(given["status"]), "note": str(given.get("note") or DEFAULT_NOTE)}
    result = sendable(given["result"]) if "result" in given else ABSENT
    return answer if result is ABSENT else {**answer, "result": result}


def step_number(step: Mapping[str, Any]) -> int:
    """Return the number of a step as the API shows it."""
    return int(step["step"])
