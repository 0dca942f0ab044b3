"""A downstream in files: it counts every order that stands and every cancellation that took effect.

It honours keys: a cancellation with a key it has seen is answered and changes nothing. What happened is on disk before
it answers, so that a process killed in the next instant cannot take it back.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ORDER: dict[str, Any] = {
    "tool": "shop.order",
    "effect": "reversible",
    "permission": "shop:write",
    "touches": ["order:{{args.order}}"],
    "compensation": {
        "tool": "shop.cancel",
        "kind": "inverse",
        "timeout_ms": 2000,
        "argument_map": {"order": "$args.order"},
        "verification": {
            "tool": "shop.status",
            "arguments": {"order": "$args.order"},
            "expect": {"standing": False},
            "retries": 1,
        },
    },
}
STATUS: dict[str, Any] = {"tool": "shop.status", "effect": "read_only", "permission": "shop:read"}
KEYED_CANCEL: dict[str, Any] = {
    "tool": "shop.cancel",
    "effect": "irreversible",
    "permission": "shop:write",
    "key_carrier": {"meta": True},
}
# The same tool as it is where nobody promises anything about keys: only the read-back can tell.
UNKEYED_CANCEL = {name: value for name, value in KEYED_CANCEL.items() if name != "key_carrier"}


def manifests(*, is_keyed: bool) -> list[dict[str, Any]]:
    return [ORDER, STATUS, KEYED_CANCEL if is_keyed else UNKEYED_CANCEL]


@dataclass(frozen=True, slots=True)
class Shop:
    """The downstream below one folder."""

    folder: Path

    def order(self, order: str) -> None:
        self._append("orders", order)

    def cancel(self, order: str, key: str | None) -> None:
        if key is None or self._is_first(f"key-{key}"):
            self._append("cancellations", order)

    def is_standing(self, order: str) -> bool:
        return self.count("orders")[order] > 0 and self.count("cancellations")[order] == 0

    def count(self, name: str) -> Counter[str]:
        path = self.folder / name
        return Counter(path.read_text().splitlines() if path.exists() else ())

    def is_first_time(self, event: str) -> bool:
        return self._is_first(f"once-{event}")

    def _is_first(self, name: str) -> bool:
        try:
            os.close(os.open(self.folder / name, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def _append(self, name: str, line: str) -> None:
        descriptor = os.open(self.folder / name, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        try:
            os.write(descriptor, f"{line}\n".encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
