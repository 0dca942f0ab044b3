"""A downstream with tools of every kind, in the test's own process: it counts what took effect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MANIFESTS = """
- {tool: shop.get, effect: read_only, permission: shop:read}
- {tool: shop.cancel, effect: idempotent, permission: shop:write, compensation_only: true}
- {tool: shop.restore, effect: idempotent, permission: shop:write, compensation_only: true}
- tool: shop.order
  effect: compensable
  permission: shop:write
  idempotency: {key: "{{args.item}}", scope: run}
  compensation:
    tool: shop.cancel
    argument_map: {id: $result.id}
    residue: [the order number stays taken]
- tool: shop.reserve
  effect: compensable
  permission: shop:write
  audit: {redaction: [$args.pin]}
  compensation:
    tool: shop.cancel
    argument_map: {id: $result.id}
    verification: {tool: shop.get, arguments: {id: $result.id}, expect: {state: gone}}
- tool: shop.rename
  effect: reversible
  permission: shop:write
  before: {tool: shop.get, arguments: {id: $args.id}}
  compensation: {tool: shop.restore, kind: inverse, argument_map: {id: $args.id, name: $before.name}}
- tool: shop.pay
  effect: compensable
  permission: shop:write
  approval: {roles: [finance], quorum: 1}
  compensation: {tool: shop.cancel, argument_map: {id: $result.id}}
- {tool: mail.send, effect: irreversible, permission: mail:send}
"""


@dataclass(slots=True)
class Shop:
    """Orders by id; undos honour their key."""

    orders: dict[str, dict[str, Any]] = field(default_factory=dict)
    effects: Counter[str] = field(default_factory=Counter)
    keys: set[str] = field(default_factory=set)

    def order(self, args: Mapping[str, Any]) -> dict[str, Any]:
        number = f"o{len(self.orders)}"
        self.orders[number] = {"id": number, "name": args.get("item"), "state": "standing"}
        self.effects["order"] += 1
        return {"id": number}

    def rename(self, args: Mapping[str, Any]) -> dict[str, Any]:
        self.orders[args["id"]]["name"] = args["name"]
        return {"ok": True}

    def read(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        assert tool == "shop.get"
        return dict(self.orders[arguments["id"]])

    def undo(self, call: Mapping[str, Any]) -> dict[str, Any]:
        order = self.orders[call["args"]["id"]]
        if call["idempotency_key"] not in self.keys:
            self.keys.add(call["idempotency_key"])
            self.effects[call["tool"]] += 1
        if call["tool"] == "shop.cancel":
            order["state"] = "gone"
        else:
            order["name"] = call["args"]["name"]
        return {"ok": True}

    def is_gone(self, call: Mapping[str, Any]) -> bool:
        return bool(self.orders[call["args"]["id"]]["state"] == "gone")
