"""What an agent is answered when its call did not bring the tool's own result: in words that it can act on.

Each answer is the result of a `tools/call` as plain JSON. Its text says what happened, whether anything was done, and
what to do now; its structured content says the same to programs. Nothing here is an error of the protocol, which many
clients never show to their model.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from approvals.core.requests import ApprovalRecord
from approvals.core.violations import Code, Violation
from gateway.core.schemas import Problem
from ledger.core.statuses import StepState
from ledger.core.values import StepRecord

META_EFFECT = "effect"
META_NOTES = "reversi/notes"
META_RUN = "reversi/run"
META_STEP = "reversi/step"
META_VIOLATIONS = "reversi/violations"
NEAR = 3

Result = dict[str, Any]

# What an agent can do about each reason; whatever else is new to it, it can always tell its operator.
ADVICE: Mapping[Code, str] = {
    Code.RUN_ROLLING_BACK: "This run is being undone: make no more calls in it until that has ended.",
    Code.HALTED: "An operator has stopped such calls: tell whoever gave you the task, and look for no way around.",
    Code.NO_MANIFEST: "Nothing says how to undo this tool: ask your operator for a manifest, or use another tool.",
    Code.DRAFT_MANIFEST: "What says how to undo this tool is not approved yet: ask your operator, or use another tool.",
    Code.COMPENSATION_ONLY: "Only rollbacks use this tool: ask for a rollback instead.",
    Code.PERMISSION: "This run was not given the permission: ask your operator, or use another tool.",
    Code.REQUIRES: "Make the required call first, then repeat this one.",
    Code.IDEMPOTENCY_KEY_UNAVAILABLE: "Give the arguments from which the call's key is made, then repeat it.",
    Code.DUPLICATE: "The same call was already made: use the result of that step instead of repeating it.",
    Code.APPROVAL_DENIED: "People decided against this call: do not repeat it, choose another way.",
    Code.BEFORE_FAILED: "Without the state before, the call could not be undone: check the arguments, then repeat it.",
}


def said(text: str, structured: Mapping[str, Any]) -> Result:
    """Return the answer of a tool of our own."""
    return {"content": [{"type": "text", "text": text}], "structuredContent": dict(structured), "isError": False}


def refused(text: str, structured: Mapping[str, Any]) -> Result:
    """Return the answer to a call that did not bring what was asked for."""
    return {**said(text, structured), "isError": True}


def failure(code: str, message: str, advice: str = "") -> Result:
    """Return the answer for an error that has a code and a sentence; nothing was done."""
    return refused(_lines(message, advice), {"error": {"code": code, "message": message}})


def unknown_tool(tool: str, known: Iterable[str]) -> Result:
    """Return the answer for a tool that nobody offers, with the names that come near."""
    near = difflib.get_close_matches(tool, sorted(known), n=NEAR)
    message = f"there is no tool {tool!r}; nothing was done"
    advice = f"Did you mean {' or '.join(near)}?" if near else "tools/list names the tools that there are."
    return refused(_lines(message, advice), {"error": {"code": "unknown_tool", "message": message, "near": near}})


def invalid_arguments(tool: str, problems: Sequence[Problem]) -> Result:
    """Return the answer for arguments that the tool's schema does not take."""
    message = f"the arguments of {tool} are not what its input schema asks for; nothing was done"
    body = {"code": "invalid_arguments", "message": message, "problems": [each.to_json() for each in problems]}
    listed = [f"- {problem}" for problem in problems]
    return refused(_lines(f"{message}:", *listed, "Mend the arguments and call again."), {"error": body})


def blocked(tool: str, violations: Sequence[Violation]) -> Result:
    """Return the answer for a call that the gate refused."""
    listed = [f"- {violation.message}" for violation in violations]
    advice = dict.fromkeys(ADVICE[each.code] for each in violations if each.code in ADVICE)
    structured = {"decision": "blocked", "violations": [violation.to_json() for violation in violations]}
    return refused(_lines(f"{tool} was blocked and nothing was done:", *listed, *advice), structured)


def approval_required(approval: ApprovalRecord, console_url: str | None) -> Result:
    """Return the answer for a call that waits until people agree to it."""
    count = "one person" if approval.quorum == 1 else f"{approval.quorum} people"
    voters = " or ".join(approval.voter_roles)
    place = f"at {console_url}/approvals/{approval.id}/" if console_url else "on the console, under Approvals"
    text = _lines(
        f"{approval.tool} waits for an approval and nothing was done yet: {approval.id} is {approval.state.value}.",
        f"It takes {count} of the role {voters}: {place}, or with `reversi approvals approve {approval.id}`.",
        f"Ask for it, and repeat exactly the same call afterwards; the request ends {_minute(approval)}.",
    )
    return refused(text, {"decision": "approval_required", "approval": approval.to_json()})


def unsuccessful(step: StepRecord, code: str, message: str) -> Result:
    """Return the answer for a call that was announced and brought no result: `failed`, or nobody knows."""
    stands = f"step {step.number} of run {step.run_id} is {step.state.value}"
    is_failed = step.state is StepState.FAILED
    text = _lines(f"{step.tool}: {message}", (_NOT_DONE if is_failed else _UNKNOWN).format(stands))
    outcome = (StepState.FAILED if is_failed else StepState.UNCERTAIN).value
    return refused(text, {"outcome": outcome, "step": step_body(step), "error": {"code": code, "message": message}})


_UNKNOWN = (
    "Nobody knows whether it happened; {}. Do not repeat it blindly: look first, with a tool that only reads, whether \
the effect is there, and tell your operator."
)
_NOT_DONE = "It was not done; {}, and the call may be made again."


def step_body(step: StepRecord) -> dict[str, Any]:
    """Return what a program needs to find the step."""
    return {"run": step.run_id, "step": step.number, "tool": step.tool, "state": step.state.value}


def step_meta(step: StepRecord) -> dict[str, Any]:
    """Return where a call is journaled, for the `_meta` of its answer."""
    return {META_STEP: {"run": step.run_id, "step": step.number}}


def observed_meta(notes: Sequence[str], violations: Sequence[Violation]) -> dict[str, Any]:
    """Return what was noted about a call that was let through, for the `_meta` of its answer; often nothing."""
    found: dict[str, Any] = {}
    if notes:
        found[META_NOTES] = list(notes)
    if violations:
        found[META_VIOLATIONS] = [violation.to_json() for violation in violations]
    return found


def with_meta(result: Mapping[str, Any], meta: Mapping[str, Any]) -> Result:
    """Return the result with ours in its `_meta`, which takes the place of what an upstream put there (D41 g)."""
    theirs = result.get("_meta")
    kept = {key: value for key, value in theirs.items() if key != META_EFFECT} if isinstance(theirs, Mapping) else {}
    merged = {**kept, **meta}
    bare = {key: value for key, value in result.items() if key != "_meta"}
    return {**bare, "_meta": merged} if merged else bare


def document(text: str, body: Mapping[str, Any]) -> Result:
    """Return the answer of a tool of our own whose text ends with its JSON, for clients that show only texts."""
    return said(_lines(text, json.dumps(body, ensure_ascii=False, default=str)), body)


def _minute(approval: ApprovalRecord) -> str:
    return approval.deadline_at.strftime("on %Y-%m-%d at %H:%M UTC")


def _lines(*lines: str) -> str:
    return "\n".join(line for line in lines if line)
