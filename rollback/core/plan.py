"""Build the plan of a rollback: a pure function of the run's steps, their manifests and the time (D22).

Newest first. The digest covers what an operator is shown, and the arguments that are hidden through their keyed
digest; what can run here and now is shown beside it and is no part of it, since the executor may stand elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from ledger.core.statuses import StepState
from reversi_sdk.canonical import lenient_bytes, sha256_hex
from rollback.core.actions import Action, Kind
from rollback.core.assessment import Assessment, assess_run
from rollback.core.dependencies import Blockers
from rollback.core.doubt import Doubt
from rollback.core.keys import KeyedDigest
from rollback.core.redaction import without_credentials
from rollback.core.selection import Selected, Selection, select
from rollback.core.steps import PlanStep
from rollback.core.undo import Chosen

CanRun = Callable[[str, str], bool]
"""Whether an undo tool can be run for a step of an upstream."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a rollback would do, newest step first.

    `cannot_run` names the steps whose undo nothing here can run, `rowless` those that only the journal tells of.
    """

    run_id: str
    actions: tuple[Action, ...]
    selection: Selected | None = None
    cannot_run: frozenset[int] = frozenset()
    rowless: tuple[int, ...] = ()

    @property
    def fully_reversible(self) -> bool:
        """Whether every step is undone or needs no undo, assuming that each undo succeeds."""
        is_answered = all(action.kind in (Kind.COMPENSATE, Kind.SKIP) for action in self.actions)
        return is_answered and not self.cannot_run and not self.rowless

    @property
    def leaves_standing(self) -> tuple[int, ...]:
        """The steps whose effect stays because their tools are declared idempotent."""
        return tuple(sorted(action.step for action in self.actions if action.is_left_standing))

    @property
    def digest(self) -> str:
        """The hash of everything that was shown, and of the arguments behind it."""
        actions = [{**action.to_json(), "pair": action.pair} for action in self.actions]
        shown = {
            "run_id": self.run_id,
            "actions": actions,
            "selection": self._selection_json(),
            "rowless": list(self.rowless),
        }
        return sha256_hex(lenient_bytes(shown))

    def to_json(self) -> dict[str, Any]:
        """Return the plan as the interface shows it."""
        return {
            "run_id": self.run_id,
            "actions": [self._action_json(action) for action in self.actions],
            "fully_reversible": self.fully_reversible,
            "leaves_standing": list(self.leaves_standing),
            "selection": self._selection_json(),
            "rowless": list(self.rowless),
            "digest": self.digest,
        }

    def _selection_json(self) -> dict[str, Any] | None:
        return None if self.selection is None else self.selection.to_json()

    def _action_json(self, action: Action) -> dict[str, Any]:
        shown = action.to_json()
        return {**shown, "reason": cannot_run_text(action)} if action.step in self.cannot_run else shown


def cannot_run_text(action: Action) -> str:
    """Say that nobody here runs the undo of the action."""
    return f"nothing can run {action.compensation_tool}"


def build_plan(
    run_id: str,
    steps: Sequence[PlanStep],
    *,
    keyed_digest: KeyedDigest,
    now: datetime,
    selection: Selection | None = None,
    can_run: CanRun | None = None,
    rowless: tuple[int, ...] = (),
) -> Plan:
    """Plan the undoing of a run's steps, given oldest first; raises SelectionInvalid."""
    assessed = assess_run(steps, keyed_digest=keyed_digest, now=now)
    selected = None
    if selection is not None:
        selected = select(steps, selection, {number: found.needs_undo for number, found in assessed.items()})
    actions = tuple(_walk(steps, assessed, selected))
    upstreams = {step.number: step.record.upstream for step in steps}
    cannot_run = frozenset(
        action.step
        for action in actions
        if can_run is not None
        and action.compensation_tool is not None
        and not can_run(action.compensation_tool, upstreams[action.step])
    )
    return Plan(run_id, actions, selected, cannot_run, rowless)


def _walk(steps: Sequence[PlanStep], assessed: Mapping[int, Assessment], selected: Selected | None) -> list[Action]:
    blockers, wanted = Blockers(), None if selected is None else frozenset(selected.steps)
    actions = []
    for step in reversed(steps):
        found = assessed[step.number]
        is_wanted = wanted is None or step.number in wanted
        action = action_of(step, found)
        blocked_by = blockers.of(step) if action.kind is Kind.COMPENSATE else ()
        if blocked_by:
            action = defer(action, blocked_by)
        if is_wanted:
            actions.append(action)
        if action.kind is Kind.SKIP or (is_wanted and action.kind is Kind.COMPENSATE):
            blockers.passes(step)
        else:
            blockers.stands(step)
    return actions


def action_of(step: PlanStep, found: Assessment) -> Action:
    """Return the line about one step, as if nothing blocked it."""
    action = Action(
        step=step.number, tool=step.record.tool, kind=found.kind, reason=found.reason, summary=step.record.summary
    )
    return action if found.chosen is None else _with_undo(action, step, found, found.chosen)


def _with_undo(action: Action, step: PlanStep, found: Assessment, chosen: Chosen) -> Action:
    undo = chosen.undo
    return replace(
        action,
        reason=_again(step, found),
        compensation_tool=undo.tool,
        args=without_credentials(chosen.shown),
        idempotency_key=chosen.key,
        needs_approval=needs_approval(step, chosen),
        residue=undo.residue,
        compensation_kind=undo.kind.value,
        verified=undo.verification is not None,
        deadline=chosen.deadline,
        role=chosen.role,
        pair=chosen.pair,
    )


def _again(step: PlanStep, found: Assessment) -> str | None:
    match found.doubt.kind:
        case Doubt.LOST:
            return "an earlier undo was sent and its outcome is unknown: it is finished first"
        case Doubt.ANSWERED:
            return "the undo was answered: only its check is left"
        case Doubt.UNSEEN:
            return "an earlier undo was answered and not seen: it is looked for first"
        case Doubt.NONE:
            return "failed before: tried again" if step.record.state is StepState.COMPENSATION_FAILED else None


def needs_approval(step: PlanStep, chosen: Chosen) -> bool:
    """Whether a person must agree to this undo: it says so, or it rests on a result that only the caller saw (D14)."""
    is_hearsay = step.manifest is not None and step.manifest.observed_by_gateway and step.record.observed_by == "caller"
    return chosen.undo.requires_approval or is_hearsay


def defer(action: Action, blocked_by: tuple[int, ...]) -> Action:
    """Return the line of a step that must wait for later steps which stay."""
    return replace(action, kind=Kind.DEFER, blocked_by=blocked_by, reason=None)
