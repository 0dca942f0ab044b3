"""The gate: everything that speaks against a call, in one fixed order (D12).

All violations are collected, so that a caller learns of all at once. In enforce mode any of them blocks; in observe
mode they are recorded and the call goes on, except under a halt and during a rollback. Approval is asked only of a
call that nothing else speaks against, and never in observe mode, where a note says that one would have been.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from approvals.core.violations import BLOCKING_ALWAYS, Code, Violation
from ledger.core.statuses import Mode
from ledger.core.values import RunRecord
from reversi_sdk.model import Manifest, ManifestStatus


@dataclass(frozen=True, slots=True)
class Situation:
    """What the gate looks at: the call, its run, its manifest, and what stands in the journal.

    `halts` are the reasons of those that match the call; `successes` maps required tools to their latest standing
    success; `holder` is the standing step with the same call key.
    """

    run: RunRecord
    tool: str
    manifest: Manifest | None
    halts: Sequence[str] = ()
    successes: Mapping[str, int] | None = None
    key_problem: str | None = None
    holder: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Admission:
    """What the gate found: the violations, those of them that block, and what only deserves a note.

    `requires_steps` are the standing successes that satisfied what the manifest requires; `needs_approval` says that
    people must agree first, to a call that nothing else speaks against.
    """

    violations: tuple[Violation, ...]
    blocking: tuple[Violation, ...]
    notes: tuple[str, ...]
    requires_steps: tuple[int, ...] = ()
    needs_approval: bool = False

    def adding(self, violation: Violation, mode: Mode) -> Admission:
        """Return the admission with one more violation, found after the gate."""
        violations = (*self.violations, violation)
        return replace(self, violations=violations, blocking=blocking(violations, mode))

    def has(self, code: Code) -> bool:
        """Tell whether a violation of that code was found."""
        return any(violation.code is code for violation in self.violations)


def admit(situation: Situation) -> Admission:
    """Judge a call."""
    mode = situation.run.mode
    violations = tuple(_violations(situation))
    return Admission(
        violations=violations,
        blocking=blocking(violations, mode),
        notes=tuple(_notes(situation.manifest, mode)),
        requires_steps=tuple(sorted((situation.successes or {}).values())),
        needs_approval=not violations and mode is Mode.ENFORCE and needs_approval(situation.manifest),
    )


def blocking(violations: Sequence[Violation], mode: Mode) -> tuple[Violation, ...]:
    """Return the violations that stop a call in this mode."""
    return tuple(found for found in violations if mode is Mode.ENFORCE or found.code in BLOCKING_ALWAYS)


def needs_approval(manifest: Manifest | None) -> bool:
    """Tell whether a person must agree to each call of the tool."""
    return manifest is not None and manifest.approval.is_required


def enforced(manifest: Manifest | None) -> Manifest | None:
    """Return the manifest unless it is a draft: nobody approved a word of that."""
    return None if manifest is None or manifest.status is ManifestStatus.DRAFT else manifest


def _violations(situation: Situation) -> Iterator[Violation]:
    if situation.run.is_rolling_back:
        yield Violation(Code.RUN_ROLLING_BACK, "the run is being rolled back")
    for reason in situation.halts:
        yield Violation(Code.HALTED, f"kill switch: {reason}")
    manifest = enforced(situation.manifest)
    if manifest is None:
        yield _unmanifested(situation)
        return
    yield from _manifest_violations(situation, manifest)


def _unmanifested(situation: Situation) -> Violation:
    if situation.manifest is None:
        return Violation(Code.NO_MANIFEST, f"no manifest for {situation.tool}")
    return Violation(Code.DRAFT_MANIFEST, f"the manifest for {situation.tool} is a draft")


def _manifest_violations(situation: Situation, manifest: Manifest) -> Iterator[Violation]:
    if manifest.is_compensation_only:
        yield Violation(Code.COMPENSATION_ONLY, f"{manifest.tool} is only for undoing")
    if not grants(situation.run.scope, manifest.permission):
        yield Violation(Code.PERMISSION, f"permission {manifest.permission} is not in the run's scope")
    for tool in manifest.requires:
        if tool not in (situation.successes or {}):
            yield Violation(Code.REQUIRES, f"requires {tool} to have succeeded")
    if situation.key_problem is not None:
        yield Violation(Code.IDEMPOTENCY_KEY_UNAVAILABLE, situation.key_problem)
    if situation.holder is not None:
        yield Violation(Code.DUPLICATE, _duplicate(situation.run.id, *situation.holder))


def _duplicate(run_id: str, holder: str, number: int) -> str:
    return f"duplicate of step {number}" + ("" if holder == run_id else f" of run {holder}")


def _notes(manifest: Manifest | None, mode: Mode) -> Iterator[str]:
    if manifest is not None and manifest.status is ManifestStatus.DEPRECATED:
        yield "manifest deprecated" + (f"; use {manifest.replaced_by}" if manifest.replaced_by else "")
    if mode is Mode.OBSERVE and needs_approval(enforced(manifest)):
        yield "approval required; not asked in observe mode"


def grants(scope: Sequence[str], permission: str) -> bool:
    """Tell whether a scope contains the permission; `*` in a scope stands for any characters, nothing else does."""
    return any(
        re.fullmatch(".*".join(map(re.escape, entry.split("*"))), permission, re.DOTALL) is not None for entry in scope
    )
