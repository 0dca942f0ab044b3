"""A rollback made by this process (D27): the server keeps plan, lease and journal and judges, the caller undoes.

Each sending is taken from the server and reported to it before the next one, so the lease is fresh for every one, the
key is the server's, and whether an undo whose outcome is unknown may be sent again is decided where the rules are. A
step that the server does not hand out is left, and the report says why it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from reversi_sdk.client import routes
from reversi_sdk.client.delivery import Delivery
from reversi_sdk.client.effects import Flow, Invoke, Pause
from reversi_sdk.client.errors import InConflict
from reversi_sdk.client.functions import Compensate, Reader, Verify
from reversi_sdk.client.jobs import OnProgress, Progress
from reversi_sdk.client.outgoing import ABSENT, error_text, read_error, sendable
from reversi_sdk.client.wire import Document, Request
from reversi_sdk.errors import InvalidInput, ReversiError
from reversi_sdk.lost_answers import is_answer_lost

MOST_ATTEMPTS = 10
# What ends the work on the whole run, and not only on one step.
ENDING = frozenset({"rollback_running", "run_rolling_back"})
LEASE_LOST = "lease_lost"
PLAN_STALE = "plan_stale"
LEFT = "left"
UNDONE = "compensated"
SUCCEEDED, UNKNOWN = "succeeded", "unknown"


@dataclass(frozen=True, slots=True)
class Retrying:
    """How often an undo is sent, and how long to wait in between."""

    attempts: int = 1
    base_ms: int = 250
    max_ms: int = 30_000

    @classmethod
    def from_options(cls, options: Mapping[str, int] | None) -> Retrying:
        """Read `{attempts, base_ms, max_ms}`; raises InvalidInput."""
        given = dict(options or {})
        unknown = sorted(given.keys() - {"attempts", "base_ms", "max_ms"})
        if unknown:
            raise InvalidInput(f"retry: unknown {', '.join(unknown)}; known are attempts, base_ms, max_ms")
        retrying = cls(**given)
        if not 1 <= retrying.attempts <= MOST_ATTEMPTS:
            raise InvalidInput(f"retry: attempts must be from 1 to {MOST_ATTEMPTS}, not {retrying.attempts}")
        if retrying.base_ms < 0 or retrying.max_ms < 0:
            raise InvalidInput("retry: delays cannot be negative")
        return retrying


@dataclass(frozen=True, slots=True)
class Undoing:
    """How a caller undoes."""

    run_id: str
    worker: str
    compensate: Compensate
    retrying: Retrying
    verify: Verify | None = None
    verifier: Reader | None = None
    on_progress: OnProgress | None = None
    digest: str | None = None


def roll_back_here(delivery: Delivery, undoing: Undoing, selection: Mapping[str, Any]) -> Flow[Document]:
    """Undo what the plan says, newest first, and return the report of how the steps then stand."""
    plan = yield from delivery.documented(routes.get_plan(undoing.run_id, selection))
    if undoing.digest is not None and undoing.digest != plan.get("digest"):
        raise InConflict(
            {"code": "plan_stale", "detail": "the plan is no longer the one that was looked at"}, status=409
        )
    actions: list[Document] = [action for action in plan["actions"] if action["kind"] == "compensate"]
    for done, action in enumerate(actions, start=1):
        word = yield from _undo(delivery, undoing, int(action["step"]))
        if undoing.on_progress is not None:
            told = Progress(done, len(actions), int(action["step"]), str(action["tool"]), word)
            yield Invoke(partial(undoing.on_progress, told))
    return (yield from delivery.documented(routes.get_report(undoing.run_id, selection)))


def _undo(delivery: Delivery, undoing: Undoing, step: int) -> Flow[str]:
    """Send the undo of one step until it is done, refused or tried often enough; return the word for how it ended."""
    state = LEFT
    for attempt in range(1, undoing.retrying.attempts + 1):
        try:
            taken = yield from delivery.documented(routes.begin_compensation(undoing.run_id, step, undoing.worker))
        except InConflict as refused:
            if refused.code in ENDING:
                raise
            return state
        state = yield from _attempt(delivery, undoing, step, taken)
        if state == UNDONE or attempt == undoing.retrying.attempts:
            break
        longest = min(undoing.retrying.max_ms, undoing.retrying.base_ms << (attempt - 1))
        yield Pause(round(longest * (0.5 + delivery.world.chance() / 2)))
    return state


def _attempt(delivery: Delivery, undoing: Undoing, step: int, taken: Document) -> Flow[str]:
    """Send once and report; return the state that the step then has."""
    call = {name: value for name, value in taken.items() if name not in ("lease", "lease_ms", "verification")}
    try:
        outcome = yield from _outcome(undoing, call)
    except GeneratorExit:
        raise
    except BaseException as error:
        yield from _report_interruption(delivery, undoing, step, taken, error)
        raise
    verification = taken.get("verification")
    if outcome["status"] == SUCCEEDED and verification and undoing.verifier is not None:
        outcome["read_back"] = yield from _read_back(undoing.verifier, verification)
    try:
        done = yield from delivery.documented(_completed(undoing, step, taken, outcome), is_important=True)
    except InConflict as refused:
        if refused.code != LEASE_LOST:
            raise
        # Somebody took the step over while this process worked; what became of it is theirs to say.
        return LEFT
    return str(done.get("state"))


def _completed(undoing: Undoing, step: int, taken: Document, outcome: Document) -> Request:
    return routes.complete_compensation(undoing.run_id, step, {"lease": taken["lease"], **outcome})


def _report_interruption(
    delivery: Delivery, undoing: Undoing, step: int, taken: Document, error: BaseException
) -> Flow[None]:
    lost = {"status": UNKNOWN, "error": error_text(error)}
    try:
        yield from delivery.documented(_completed(undoing, step, taken, lost), is_important=True)
    except ReversiError as unreported:
        error.add_note(f"the undo of step {step} was broken off, and the server could not be told: {unreported}")


def _outcome(undoing: Undoing, call: Document) -> Flow[Document]:
    try:
        yield Invoke(partial(undoing.compensate, call))
    except Exception as error:  # noqa: BLE001  # whatever it is says how the undo ended
        return {"status": UNKNOWN if is_answer_lost(error) else "failed", "error": error_text(error)}
    unconfirmed = None if undoing.verify is None else (yield from _unconfirmed(undoing.verify, call))
    if unconfirmed is None:
        return {"status": SUCCEEDED}
    # It may have worked all the same: the server knows whether sending it again does no harm.
    return {"status": UNKNOWN, "error": f"the undo was answered, but its check {unconfirmed}"}


def _unconfirmed(verify: Verify, call: Document) -> Flow[str | None]:
    """Return why the check does not confirm the undo; only True confirms."""
    try:
        is_seen = yield Invoke(partial(verify, call))
    except Exception as error:  # noqa: BLE001  # a check that cannot be made confirms nothing
        return f"failed: {error_text(error)}"
    return None if is_seen is True else f"did not confirm it: {is_seen!r:.200}"


def _read_back(verifier: Reader, verification: Document) -> Flow[Document]:
    arguments = dict(verification.get("arguments") or {})
    try:
        value = yield Invoke(partial(verifier, str(verification.get("tool")), arguments))
    except Exception as error:  # noqa: BLE001  # any failure of a read is a failed read
        return {"error": read_error(error)}
    shown = sendable(value)
    return {"error": "the verifier's answer is not JSON"} if shown is ABSENT else {"answer": shown}
