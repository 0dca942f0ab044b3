"""Put together the call that undoes a step, whoever sends it."""

from __future__ import annotations

from rollback.core.ports import UndoCall
from rollback.core.steps import PlanStep
from rollback.core.undo import Chosen


def undo_call(step: PlanStep, chosen: Chosen, *, timeout_ms: int, is_overwrite_allowed: bool = False) -> UndoCall:
    """Return the call as it is sent, the key in the argument that the tool takes it in (D41 b)."""
    record = step.record
    return UndoCall(
        run_id=record.run_id,
        step=record.number,
        tool=chosen.undo.tool,
        original_tool=record.tool,
        args={**chosen.arguments, **_carried_key(step, chosen)},
        idempotency_key=chosen.key,
        timeout_ms=timeout_ms,
        is_overwrite_allowed=is_overwrite_allowed,
    )


def _carried_key(step: PlanStep, chosen: Chosen) -> dict[str, str]:
    # Never part of the pair: the key follows from the pair.
    tool = step.follow_ups.get(chosen.undo.tool)
    carrier = tool.key_carrier if tool is not None else None
    return {} if carrier is None or carrier.argument is None else {carrier.argument: chosen.key}
