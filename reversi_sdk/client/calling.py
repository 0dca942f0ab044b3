"""One call: announced, made, and its end reported (D12, D35).

The function of the caller runs between two answers of the server: `intended` is committed before it, and whatever it
does is reported after it. A report is repeated for as long as it takes; when the server cannot be told, the error says
that the step stays `intended`, and nothing is called twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from reversi_sdk.client import routes
from reversi_sdk.client.approving import answered
from reversi_sdk.client.delivery import Delivery
from reversi_sdk.client.effects import Flow, Invoke
from reversi_sdk.client.errors import (
    AnswerNotUnderstood,
    ApprovalRequired,
    CallBlocked,
    OutcomeNotReported,
    where_it_stands,
)
from reversi_sdk.client.functions import Executing, Reader
from reversi_sdk.client.outgoing import ABSENT, error_text, read_error, sendable, without_redacted
from reversi_sdk.client.wire import Document, refusal
from reversi_sdk.errors import ReversiError
from reversi_sdk.lost_answers import is_answer_lost

APPROVED, DENIED = "approved", "denied"


@dataclass(frozen=True, slots=True)
class Call:
    """What a caller wants done."""

    run_id: str
    tool: str
    args: Mapping[str, Any]
    execute: Executing
    reader: Reader | None = None
    reason: str = ""
    depends_on: Sequence[int] = ()
    idempotency_key: str | None = None
    wait_ms: int | None = 0

    @property
    def fields(self) -> Document:
        """The body that announces it."""
        return {
            "tool": self.tool,
            "args": dict(self.args),
            "reason": self.reason or None,
            "depends_on": list(self.depends_on) or None,
            "idempotency_key": self.idempotency_key,
        }


@dataclass(frozen=True, slots=True)
class Made:
    """A call that succeeded: what the function returned, and its step as the server knows it."""

    step: int
    result: Any
    state: str
    effect: str | None
    idempotency_key: str | None
    notes: tuple[str, ...] = ()
    violations: tuple[Document, ...] = ()
    report: Document = field(default_factory=dict)


def make_call(delivery: Delivery, call: Call) -> Flow[Made]:
    """Make the call; raises CallBlocked or ApprovalRequired when nothing ran, and whatever the function raised."""
    begun, read = yield from _begin(delivery, call)
    try:
        result = yield Invoke(call.execute.bound(call.args, begun.get("idempotency_key")))
    except GeneratorExit:
        # Whoever drove this flow has gone; nobody is left to report through.
        raise
    except BaseException as error:
        yield from _report_error(delivery, call, begun, error)
        raise
    outcome: Document = {"status": "succeeded"}
    shown = sendable(result)
    if shown is not ABSENT:
        outcome["result"] = shown
    if read is not None:
        outcome["after"] = yield from read()
    return (yield from _report_success(delivery, call, begun, result, outcome))


def _begin(delivery: Delivery, call: Call) -> Flow[tuple[Document, Callable[[], Flow[Document]] | None]]:
    """Return what the server said when it let the call through, and how the state before was read."""
    ends_ms = None if call.wait_ms is None else delivery.world.now_ms() + call.wait_ms
    read: Callable[[], Flow[Document]] | None = None
    before: Document | None = None
    while True:
        answer = yield from delivery.delivered(routes.begin_call(call.run_id, call.fields, before))
        match answer.status, answer.problem.get("decision"):
            case 201, "allowed":
                return answer.document, read
            case 202, "approval_required":
                yield from _approval(delivery, answer.document, ends_ms)
                # People may have taken hours: the state is read again.
                before = None
            case 428, "before_required" if before is None:
                read = partial(_read, answer.problem.get("before"), call.reader)
                before = yield from read()
            case 403, "blocked":
                raise CallBlocked(answer.problem.get("violations") or [])
            case status, _ if status >= 400:
                raise refusal(answer)
            case _:
                raise AnswerNotUnderstood(f"the server answered a call with {answer.status} and no decision")


def _approval(delivery: Delivery, document: Document, ends_ms: int | None) -> Flow[None]:
    """Return once the call may be made again; raises ApprovalRequired when nobody has answered in time."""
    approval: Document = document.get("approval") or {}
    approval = yield from answered(delivery, approval, ends_ms)
    # Made again, a denied call is blocked with the reason, which is what its maker must see.
    if approval.get("state") not in (APPROVED, DENIED):
        raise ApprovalRequired(approval)


def _read(wanted: Any, reader: Reader | None) -> Flow[Document]:
    """Read the state before or after a call; a read that fails is an answer too."""
    if not isinstance(wanted, dict):
        raise AnswerNotUnderstood("the server asks for the state before a call and does not say how to read it")
    if reader is None:
        return {"error": f"nothing can run {wanted.get('tool')}"}
    try:
        value = yield Invoke(partial(reader, str(wanted.get("tool")), dict(wanted.get("arguments") or {})))
    except Exception as error:  # noqa: BLE001  # any failure of a read is a failed read
        return {"error": read_error(error)}
    shown = sendable(value)
    return {"error": "the reader's answer is not JSON"} if shown is ABSENT else {"found": True, "value": shown}


def _report_success(delivery: Delivery, call: Call, begun: Document, result: Any, outcome: Document) -> Flow[Made]:
    step = int(begun["step"])
    try:
        request = routes.complete_call(call.run_id, step, outcome)
        report = yield from delivery.documented(request, is_important=True)
    except ReversiError as error:
        raise OutcomeNotReported(run_id=call.run_id, step=step, result=result, why=error) from error
    return Made(
        step=step,
        result=result,
        state=str(report.get("state")),
        effect=begun.get("effect"),
        idempotency_key=begun.get("idempotency_key"),
        notes=tuple(begun.get("notes") or ()),
        violations=tuple(begun.get("violations") or ()),
        report=report,
    )


def _report_error(delivery: Delivery, call: Call, begun: Document, error: BaseException) -> Flow[None]:
    """Tell the server what the exception means, and note on it where the step stands."""
    state = "uncertain" if is_answer_lost(error) else "failed"
    place = f"step {begun['step']} of run {call.run_id}"
    told = without_redacted(error_text(error), call.args, begun.get("redacted") or ())
    outcome = {"status": state, "error": told}
    request = routes.complete_call(call.run_id, int(begun["step"]), outcome)
    try:
        yield from delivery.documented(request, is_important=True)
    except ReversiError as lost:
        # The tool's own error matters more to the caller.
        error.add_note(f"{place} is {state}, but that could not be reported: {where_it_stands(lost)}")
    else:
        error.add_note(f"{place} is {state}")
