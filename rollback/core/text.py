"""Plans and reports as lines that can be read aloud to a stranger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ledger.core.statuses import ReadBack
from rollback.core.actions import Action, Kind
from rollback.core.plan import Plan, cannot_run_text
from rollback.core.report import Bucket, Entry, Report
from rollback.core.selection import Selected
from rollback.core.undo import time_text

_DETAIL = " " * 10
# A failed undo may have happened all the same where its outcome is unknown: the word must not deny it.
_WORDS = {
    Bucket.COMPENSATED: "undone",
    Bucket.SKIPPED: "nothing to undo",
    Bucket.FAILED: "failed",
    Bucket.UNRECOVERABLE: "cannot be undone",
    Bucket.UNRESOLVED: "unresolved",
    Bucket.UNMANIFESTED: "unmanifested",
    Bucket.DEFERRED: "deferred",
    Bucket.AWAITING_APPROVAL: "awaiting approval",
}
_READ_BACKS = {
    ReadBack.VERIFIED: "read back and confirmed",
    ReadBack.UNVERIFIED: "not read back yet",
    ReadBack.NOT_DECLARED: "no read-back declared",
}


def plan_lines(plan: Plan) -> tuple[str, ...]:
    """Return the plan, newest step first; the last line says whether everything can be undone."""
    lines = [*_selection_lines(plan.selection)]
    for action in plan.actions:
        lines += [_action_line(action, plan), *_action_details(action)]
    if not plan.actions:
        lines.append("  no steps")
    if plan.leaves_standing:
        lines.append(f"  left standing, declared idempotent: {_numbers(plan.leaves_standing)}")
    lines += [f"  {line}" for line in _rowless_lines(plan.rowless)]
    lines.append("  fully reversible" if plan.fully_reversible else "  NOT fully reversible: see above")
    return tuple(lines)


def _selection_lines(selected: Selected | None) -> Iterator[str]:
    if selected is None:
        return
    asked = selected.wanted
    chosen = asked.steps or ()
    steps = f"step{'' if len(chosen) == 1 else 's'} {_numbers(chosen)}"
    wanted = steps if asked.to_step is None else f"all after step {asked.to_step}"
    added = f", with {_numbers(selected.added)}, which must go first" if selected.added else ""
    yield f"  only {wanted}{added}"


def _action_line(action: Action, plan: Plan) -> str:
    if action.step in plan.cannot_run and action.kind is Kind.COMPENSATE:
        reason = f"-> {action.compensation_tool}, but {cannot_run_text(action)}"
    elif action.kind is Kind.COMPENSATE:
        reason = f"-> {action.compensation_tool}"
    elif action.kind is Kind.DEFER:
        reason = f"waits until {_steps(action.blocked_by)} {'is' if len(action.blocked_by) == 1 else 'are'} undone"
    else:
        reason = action.reason or ""
    return f"  step {action.step}  {action.tool}  {action.kind.value}  {reason}".rstrip()


def _action_details(action: Action) -> Iterator[str]:
    if action.summary:
        yield f"{_DETAIL}{action.summary}"
    if action.kind is not Kind.COMPENSATE:
        return
    if action.reason:
        yield f"{_DETAIL}{action.reason}"
    if action.is_fallback:
        yield f"{_DETAIL}the step's own undo no longer serves: this is its fallback"
    if action.deadline is not None:
        yield f"{_DETAIL}undo window closes at {time_text(action.deadline)}"
    if action.needs_approval:
        yield f"{_DETAIL}needs an approval"
    for residue in action.residue:
        yield f"{_DETAIL}stays behind: {residue}"
    yield f"{_DETAIL}{'read back before it counts as done' if action.verified else 'nothing to read back'}"


def report_lines(report: Report) -> tuple[str, ...]:
    """Return the report, newest step first; the last line says whether anything is left to do."""
    lines = [*_selection_lines(report.selection)]
    for entry in report.entries:
        lines += [_entry_line(entry), *_entry_details(entry)]
    if not report.entries:
        lines.append("  no steps")
    lines += _closing_lines(report)
    lines.append("rollback COMPLETE" if report.is_complete else "rollback INCOMPLETE")
    return tuple(lines)


def _entry_line(entry: Entry) -> str:
    match entry.bucket:
        case Bucket.COMPENSATED:
            how = "by hand, " if entry.is_by_hand else "by its fallback, " if entry.is_fallback else ""
            reason = f"{how}{_READ_BACKS[entry.read_back or ReadBack.NOT_DECLARED]}"
        case Bucket.DEFERRED:
            reason = f"{_steps(entry.blocked_by)} {'stands' if len(entry.blocked_by) == 1 else 'stand'} on it"
        case _:
            reason = entry.reason or ""
    return f"  step {entry.step}  {entry.tool}  {_WORDS[entry.bucket]}  {reason}".rstrip()


def _entry_details(entry: Entry) -> Iterator[str]:
    if entry.summary:
        yield f"{_DETAIL}{entry.summary}"
    for residue in entry.residue:
        yield f"{_DETAIL}stays behind: {residue}"


def _closing_lines(report: Report) -> Iterator[str]:
    data = report.to_json()
    if data["leaves_standing"]:
        yield f"left standing, declared idempotent: {_numbers(data['leaves_standing'])}"
    if report.unchecked:
        yield f"undone, nothing to read back: {_numbers(report.unchecked)}"
    if report.unverified:
        steps = _numbers(report.unverified)
        yield f"undone but not verified (declared read-back not run; pass --reader-cmd): {steps}"
    yield from _rowless_lines(report.rowless)


def _rowless_lines(rowless: Sequence[int]) -> Iterator[str]:
    if rowless:
        yield f"in the journal and without a row (somebody changed the database): {_numbers(rowless)}"


def _numbers(steps: Sequence[int]) -> str:
    return ", ".join(str(step) for step in steps)


def _steps(steps: Sequence[int]) -> str:
    return f"{'step' if len(steps) == 1 else 'steps'} {_numbers(steps)}"
