"""Waiting until people have answered an approval request, by asking the server to hold each look for a while."""

from __future__ import annotations

from reversi_sdk.client import routes
from reversi_sdk.client.delivery import Delivery
from reversi_sdk.client.effects import Flow, Pause
from reversi_sdk.client.wire import Document

PENDING = "pending"
LONGEST_LOOK_MS = 20_000
SHORTEST_LOOK_MS = 500


def answered(delivery: Delivery, approval: Document, ends_ms: int | None) -> Flow[Document]:
    """Return the request once it is answered, or as it stands at `ends_ms`; None waits for as long as it takes."""
    while approval.get("state") == PENDING:
        begun_ms = delivery.world.now_ms()
        left_ms = LONGEST_LOOK_MS if ends_ms is None else min(LONGEST_LOOK_MS, ends_ms - begun_ms)
        if left_ms <= 0:
            return approval
        request = routes.get_approval(str(approval.get("id")), max(1, left_ms // 1000))
        approval = yield from delivery.documented(request)
        spent_ms = delivery.world.now_ms() - begun_ms
        if approval.get("state") == PENDING and spent_ms < SHORTEST_LOOK_MS:
            # A server that does not hold the look must not be asked in a circle.
            yield Pause(SHORTEST_LOOK_MS - spent_ms)
    return approval
