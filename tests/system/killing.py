"""Tools for a worker that is killed at a named boundary: once for each run whose name asks for it.

An order is named `<boundary>/<number>/<step>`; only step 1 of a run kills. `REVERSI_TOOLS` names `killing_tools`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rollback.core.ports import Answer, ReadFailed, Tools, UndoAnswer, UndoCall, Undone
from tests.system.shop import Shop

FOLDER = "REVERSI_TEST_SHOP"
BEFORE_THE_UNDO = "compensating_committed"
AFTER_THE_UNDO = "undo_happened"
BEFORE_THE_OUTCOME = "outcome_not_committed"
BOUNDARIES = (BEFORE_THE_UNDO, AFTER_THE_UNDO, BEFORE_THE_OUTCOME)
KILLING_STEP = "1"


def killing_tools() -> Tools:
    shop = Shop(Path(os.environ[FOLDER]))
    return Tools(KillingExecutor(shop), KillingReader(shop))


def kill_at(shop: Shop, boundary: str, order: str) -> None:
    """Die here, as by kill -9, the first time that this order comes to this boundary."""
    named, _, step = order.split("/")
    if named == boundary and step == KILLING_STEP and shop.is_first_time(order.replace("/", "-")):
        os.kill(os.getpid(), signal.SIGKILL)


class KillingExecutor:
    def __init__(self, shop: Shop) -> None:
        self._shop = shop

    def can_run(self, tool: str) -> bool:
        return tool == "shop.cancel"

    def honours_key(self, tool: str) -> bool:
        return False

    def compensate(self, call: UndoCall) -> UndoAnswer:
        order = call.args["order"]
        kill_at(self._shop, BEFORE_THE_UNDO, order)
        self._shop.cancel(order, call.idempotency_key)
        kill_at(self._shop, AFTER_THE_UNDO, order)
        return Undone()


class KillingReader:
    def __init__(self, shop: Shop) -> None:
        self._shop = shop

    def can_read(self, tool: str) -> bool:
        return tool == "shop.status"

    def read(self, tool: str, arguments: Mapping[str, Any], *, timeout_ms: int) -> Answer | ReadFailed:
        order = arguments["order"]
        kill_at(self._shop, BEFORE_THE_OUTCOME, order)
        return Answer({"standing": self._shop.is_standing(order)})
