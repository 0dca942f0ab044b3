"""Make a call: the way in which whoever can wait makes calls.

Read the state before where the manifest asks for it, announce the call, make it with no transaction open, record how
it ended, and read the state once more: the course is `gateway.operations.conversation`'s, and this does its acts one
after the other. Whatever the tool's function raises is raised on once the journal holds what it means; a note on the
exception names the step and its state. When the process dies in between, the step stays `intended`, and the sweep
calls it uncertain.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, assert_never

from approvals.core.upstreams import upstream_of as default_upstream
from approvals.operations.calls import Begun, begin_call, complete_call
from approvals.operations.intents import OBSERVED_BY_GATEWAY
from gateway.operations.conversation import (
    Act,
    Begin,
    CallRequest,
    CallResult,
    Complete,
    Conversation,
    Read,
    Send,
    Wait,
)
from ledger.core.values import StepRecord
from manifests_registry.core.snapshot import Snapshot
from reversi_sdk.errors import ToolError
from reversi_site.kit.clock import Clock, SystemClock
from reversi_site.kit.transactions import require_no_transaction

__all__ = ["CallResult", "Execute", "Reader", "announce", "call", "no_reader", "record"]

Execute = Callable[[dict[str, Any], str | None], Any]
Reader = Callable[[str, Mapping[str, Any]], Any]
Sleep = Callable[[float], None]


def call(
    run_id: str,
    tool: str,
    args: Mapping[str, Any],
    *,
    execute: Execute,
    principal: str,
    reader: Reader | None = None,
    reason: str = "",
    depends_on: Sequence[int] = (),
    idempotency_key: str | None = None,
    upstream_of: Callable[[str], str] = default_upstream,
    snapshot: Snapshot | None = None,
    clock: Clock | None = None,
    sleep: Sleep = time.sleep,
) -> CallResult:
    """Make one call of a run's agent and journal it.

    `execute` gets the arguments and the key to send, None where the tool carries none. `reader` makes the reads that
    `before` declares: it answers or raises. Raises what begin_call raises (then nothing ran) and what `execute` does.
    """
    require_no_transaction()
    clock = clock if clock is not None else SystemClock()
    request = CallRequest(
        run_id=run_id,
        principal=principal,
        tool=tool,
        args=args,
        reason=reason,
        depends_on=depends_on,
        idempotency_key=idempotency_key,
        upstream_of=upstream_of,
        snapshot=snapshot,
    )
    conversation = Conversation(request, clock=clock)
    while (act := conversation.act) is not None:
        try:
            answer = _do(act, execute, reader, clock, sleep)
        except BaseException as error:  # noqa: BLE001  # the conversation raises what nobody can make a step of
            conversation.fail(error)
        else:
            conversation.answer(answer)
    ended = conversation.ended
    if isinstance(ended, CallResult):
        return ended
    raise ended.error


def _do(act: Act, execute: Execute, reader: Reader | None, clock: Clock, sleep: Sleep) -> Any:
    match act:
        case Begin():
            return announce(act, clock=clock)
        case Read():
            require_no_transaction()
            return (reader or no_reader)(act.tool, dict(act.arguments))
        case Send():
            require_no_transaction()
            return execute(act.arguments, act.idempotency_key)
        case Wait():
            return sleep(act.ms / 1000)
        case Complete():
            return record(act, clock=clock)
        case _:
            assert_never(act)


def no_reader(tool: str, arguments: Mapping[str, Any]) -> Any:
    """Read nothing: stands where nobody can make the reads of a `before`."""
    raise ToolError(f"nothing can run {tool}")


def announce(act: Begin, *, clock: Clock) -> Begun:
    """Announce the call, durably; raises what begin_call raises."""
    request = act.request
    return begin_call(
        run_id=request.run_id,
        principal=request.principal,
        tool=request.tool,
        args=request.args,
        now=clock.now(),
        observed_by=OBSERVED_BY_GATEWAY,
        reason=request.reason,
        depends_on=request.depends_on,
        idempotency_key=request.idempotency_key,
        before=act.before,
        upstream_of=request.upstream_of,
        snapshot=request.snapshot,
    )


def record(act: Complete, *, clock: Clock) -> StepRecord:
    """Record how the call ended, durably; raises what complete_call raises."""
    step = act.begun.step
    return complete_call(
        run_id=step.run_id,
        number=step.number,
        status=act.state,
        result=act.result,
        error=act.error,
        after=act.after,
        actor=act.begun.actor,
        now=clock.now(),
    )
