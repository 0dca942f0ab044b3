"""Make declared reads: the read-back after an undo, and the look at what an undo would overwrite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

from approvals.core.before import BeforeAnswer, after_digest, before_digest
from ledger.core.handles import Handle
from ledger.core.text import make_visible
from reversi_sdk.model import Verification
from reversi_sdk.references import Unavailable, resolve
from reversi_site.kit.transactions import require_no_transaction
from rollback.core.backoff import doubled_ms
from rollback.core.ports import Answer, ReadFailed
from rollback.core.read_back import Expectation, expectation_of, first_mismatch
from rollback.core.redaction import hide_in_text
from rollback.core.steps import PlanStep
from rollback.core.touching import is_restoring
from rollback.operations.jobs import ERROR, renew
from rollback.operations.work import Work, usual_timeout_ms


@dataclass(frozen=True, slots=True)
class Matched:
    """The answer shows what the manifest expects after the undo."""

    tool: str


@dataclass(frozen=True, slots=True)
class Mismatched:
    """The answer shows something else; `mismatch` is the first difference of the first read."""

    tool: str
    mismatch: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Nothing could be read, so nothing is known."""

    tool: str
    error: str


Verdict: TypeAlias = Matched | Mismatched | Unreadable


def read_back(work: Work, step: PlanStep, verification: Verification) -> Verdict:
    """Make the declared read-back, with its retries, under a renewed lease; raises FenceLost."""
    expectation = expected_of(step, verification)
    if isinstance(expectation, str):
        return Unreadable(verification.tool, expectation)
    verdict = _read_once(work, step, expectation)
    first = verdict
    for tries in range(1, expectation.reads):
        if isinstance(verdict, Matched):
            return verdict
        wait_ms = doubled_ms(expectation.backoff_ms, tries)
        renew(work.claim, busy_ms=wait_ms)
        work.sleep(wait_ms / 1000)
        verdict = _read_once(work, step, expectation)
    # The last word counts where something was read; the first difference is the one that is told.
    is_told = isinstance(first, Mismatched) and isinstance(verdict, Mismatched)
    return first if is_told else verdict


def expected_of(step: PlanStep, verification: Verification) -> Expectation | str:
    """Fill the read-back from the step's handle, or say why that cannot be done."""
    handle = step.record.handle
    if not isinstance(handle, Handle):
        return f"cannot verify: {handle.reason}"
    return expectation_of(verification, handle, step.redacted)


def _read_once(work: Work, step: PlanStep, expectation: Expectation) -> Verdict:
    answer = _read(work, step, expectation.tool, expectation.arguments)
    match answer:
        case ReadFailed(error=error):
            return Unreadable(expectation.tool, error)
        case Answer(value=value):
            mismatch = first_mismatch(expectation, value)
            return Matched(expectation.tool) if mismatch is None else Mismatched(expectation.tool, mismatch)
        case _:
            assert_never(answer)


def _read(work: Work, step: PlanStep, tool: str, arguments: Mapping[str, Any]) -> Answer | ReadFailed:
    timeout_ms = usual_timeout_ms()
    renew(work.claim, busy_ms=timeout_ms)
    require_no_transaction()
    answer = work.tools.at(step.record.upstream).read(tool, arguments, timeout_ms=timeout_ms)
    return ReadFailed(presentable(step, answer.error)) if isinstance(answer, ReadFailed) else answer


def presentable(step: PlanStep, said: str) -> str:
    """Return what a tool said about the step as it may be shown, journaled and stored."""
    return make_visible(hide_in_text(said, step.record.handle, step.redacted), limit=ERROR)


def what_changed_since(work: Work, step: PlanStep, *, was_sent: bool) -> str | None:
    """Say what is known to stand, or cannot be read, in the place of what the step left; None when nothing is.

    Only an undo that puts a state back can run over newer work, and only where the state after the call was read. One
    that was sent before may have worked: then the state before the call is no newer work either.
    """
    manifest, handle = step.manifest, step.record.handle
    if manifest is None or manifest.before is None or not isinstance(handle, Handle) or handle.after is None:
        return None
    tool = manifest.before.tool
    if not is_restoring(manifest) or not work.tools.at(step.record.upstream).can_read(tool):
        return None
    arguments = resolve(manifest.before.arguments, handle.find)
    if isinstance(arguments, Unavailable):
        return f"changed since, perhaps: {tool} cannot be asked ({arguments.reason})"
    answer = _read(work, step, tool, arguments.values)
    seen = BeforeAnswer(value=answer.value) if isinstance(answer, Answer) else BeforeAnswer(error=answer.error)
    found = after_digest(work.keyed_digest, manifest, seen, handle.find)
    if found is None:
        return f"changed since, perhaps: {tool} did not answer ({seen.error})"
    undone = before_digest(work.keyed_digest, manifest, handle) if was_sent else None
    return None if found in (handle.after, undone) else f"changed since: {tool} shows newer work than this run's"
