"""What agents leave in the journal for the console's tests to find; through the real gate, in a real world."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from approvals.core.errors import ApprovalRequired, CallBlocked
from approvals.core.requests import ApprovalRecord
from gateway.operations.calls import call
from ledger.operations.runs import open_run
from reversi_sdk.errors import EffectUncertainError
from tests.console.world import BROKEN, World, shop

# Text as an injected agent would write it: markup, and characters that reorder or hide what follows.
HOSTILE = '<script>alert("x")</script> \u202egnp.exe\u202c \u2066hidden\u2069'
VISIBLE = "\\u{202e}gnp.exe\\u{202c}"


def start_run(*, principal: str, run_id: str, **fields: Any) -> str:
    usual: dict[str, Any] = {"scope": ("shop:*", "mail:*"), "now": datetime.now(UTC), "actor": "shop-agent"}
    return open_run(principal=principal, run_id=run_id, **{**usual, **fields})[0].id


def do(world: World, run_id: str, tool: str, args: Mapping[str, Any], *, principal: str, reason: str = "") -> int:
    """Make one call and return its step; the thing that it is about is the argument `id`."""

    def execute(arguments: dict[str, Any], key: str | None) -> dict[str, Any]:
        thing = str(arguments.get("id") or f"{tool.replace('.', '-')}-{arguments.get('item', 'x')}")
        return world.put(thing, state="placed", **({BROKEN: True} if arguments.get("item") == BROKEN else {}))

    return call(run_id, tool, args, execute=execute, principal=principal, snapshot=shop(), reason=reason).step.number


def order(world: World, run_id: str, item: str, *, principal: str, amount: int = 1900) -> int:
    return do(world, run_id, "shop.order", {"item": item, "amount": amount}, principal=principal)


def lose_answer(world: World, run_id: str, item: str, *, principal: str) -> None:
    """Make an order whose answer gets lost on the way back; the thing is there."""

    def execute(arguments: dict[str, Any], key: str | None) -> None:
        world.put(f"shop-order-{item}", state="placed")
        raise EffectUncertainError("the connection broke before the answer came")

    with suppress(EffectUncertainError):
        call(
            run_id,
            "shop.order",
            {"item": item, "amount": 700},
            execute=execute,
            principal=principal,
            snapshot=shop(),
        )


def be_blocked(world: World, run_id: str, tool: str, args: Mapping[str, Any], *, principal: str) -> None:
    with suppress(CallBlocked):
        do(world, run_id, tool, args, principal=principal)


def ask_to_wire(
    world: World, run_id: str, *, principal: str, reason: str = "invoice 12 is due", **args: Any
) -> ApprovalRecord:
    """Make a call that people must agree to, and return the request."""
    usual = {"amount": 125_000, "iban": "DE02 1203 0000 0000 2020 51", "pin": "9911-secret"}
    try:
        do(world, run_id, "shop.wire", {**usual, **args}, principal=principal, reason=reason)
    except ApprovalRequired as waiting:
        return waiting.approval
    raise AssertionError("the call must wait for an approval")


def mixed_run(world: World, *, principal: str, run_id: str, **fields: Any) -> str:
    """A run with a bit of everything, only observed, which a rollback cannot undo as a whole."""
    start_run(principal=principal, run_id=run_id, mode="observe", **fields)
    do(world, run_id, "shop.get", {"id": "shop-order-book"}, principal=principal)
    order(world, run_id, "book", principal=principal)
    do(world, run_id, "shop.pin", {"id": "wall", "note": "sale ends friday"}, principal=principal)
    do(world, run_id, "shop.tag", {"id": "shop-order-book", "tag": "gift"}, principal=principal)
    lose_answer(world, run_id, "lamp", principal=principal)
    do(world, run_id, "files.wipe", {"path": "/"}, principal=principal)
    do(world, run_id, "mail.send", {"to": "customer@example.org"}, principal=principal)
    order(world, run_id, BROKEN, principal=principal)
    return run_id
