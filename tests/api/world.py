"""A shop behind the API: its manifests, the people around it, their keys, and a client that speaks JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.test import Client

from approvals.operations.keys import create_key, revoke_key
from approvals.operations.people import ensure_user, setup_roles

SETUP = "local:tester"
MANIFESTS = """
- tool: shop.get
  effect: read_only
  permission: shop:read
- tool: shop.cancel
  effect: idempotent
  permission: shop:write
  compensation_only: true
- tool: shop.order
  effect: compensable
  permission: shop:write
  audit: {redaction: [$args.pin]}
  compensation:
    tool: shop.cancel
    argument_map: {id: $result.id}
    residue: [the order number stays taken]
    verification: {tool: shop.get, arguments: {id: $result.id}, expect: {state: gone}}
- tool: shop.rename
  effect: reversible
  permission: shop:write
  before: {tool: shop.get, arguments: {id: $args.id}, absent_when: {path: found, equals: false}}
  compensation: {tool: shop.restore, kind: inverse, argument_map: {id: $args.id, name: $before.name}}
- tool: shop.restore
  effect: idempotent
  permission: shop:write
  compensation_only: true
- tool: shop.pay
  effect: compensable
  permission: shop:write
  approval: {roles: [finance], quorum: 1}
  compensation: {tool: shop.cancel, argument_map: {id: $result.id}}
- tool: shop.tag
  effect: idempotent
  permission: shop:write
- tool: mail.send
  effect: irreversible
  permission: mail:send
"""
ROLES: Mapping[str, tuple[str, ...]] = {
    "agent": ("agent",),
    "other_agent": ("agent",),
    "operator": ("operator",),
    "reviewer": ("reviewer",),
    "approver": ("finance",),
    "admin": ("admin",),
    "auditor": ("auditor",),
}


def now() -> datetime:
    return datetime.now(UTC)


def make_key(owner: str, **limits: Any) -> str:
    """Make a key of an existing user and return its token."""
    return create_key(owner=owner, actor=SETUP, now=now(), **limits)[1]


def make_people() -> Mapping[str, str]:
    """Make a user of every kind, and return a key for each; also one revoked and one expired."""
    setup_roles(actor=SETUP, now=now())
    for username, roles in ROLES.items():
        ensure_user(username=username, roles=roles, actor=SETUP, now=now())
    keys = {username: make_key(username) for username in ROLES}
    revoked, token = create_key(owner="agent", actor=SETUP, now=now())
    revoke_key(prefix=revoked.prefix, actor=SETUP, now=now())
    earlier = now() - timedelta(days=2)
    expired = create_key(owner="agent", actor=SETUP, now=earlier, expires_at=earlier + timedelta(days=1))[1]
    return {**keys, "revoked": token, "expired": expired}


def write_manifests(folder: Path) -> Path:
    path = folder / "manifests.yaml"
    path.write_text(MANIFESTS)
    return path


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer, taken apart."""

    status: int
    data: Any
    headers: Mapping[str, str]
    content: bytes


@dataclass(frozen=True, slots=True)
class Api:
    """The API as one caller uses it."""

    token: str | None
    client: Client = field(default_factory=Client)

    def get(self, path: str, **query: Any) -> Answered:
        return self.send("GET", path, query=query)

    def post(self, path: str, body: Any = None, *, key: str | None = None) -> Answered:
        headers = {} if key is None else {"Idempotency-Key": key}
        content = b"" if body is None else json.dumps(body).encode()
        return self.send("POST", path, content=content, headers=headers)

    def send(
        self,
        method: str,
        path: str,
        *,
        content: bytes = b"",
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> Answered:
        """Send a request; a path without a leading slash is under `/v1/`."""
        full = path if path.startswith(("/", "http")) else f"/v1/{path}"
        own = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        response = self.client.generic(
            method, full, content, content_type, query_params=dict(query or {}), headers={**own, **(headers or {})}
        )
        is_json = response.headers.get("Content-Type", "").partition(";")[0].endswith("json")
        data = json.loads(response.content) if is_json and response.content else None
        return Answered(response.status_code, data, dict(response.headers), response.content)


@dataclass(frozen=True, slots=True)
class World:
    """Everybody's way in."""

    keys: Mapping[str, str]

    def api(self, who: str) -> Api:
        return Api(self.keys[who])

    @property
    def agent(self) -> Api:
        return self.api("agent")

    @property
    def operator(self) -> Api:
        return self.api("operator")

    @property
    def admin(self) -> Api:
        return self.api("admin")


def open_run(api: Api, **fields: Any) -> str:
    answer = api.post("runs", {"scope": ["shop:*", "mail:*"], **fields})
    assert answer.status in (200, 201), answer.data
    run_id: str = answer.data["id"]
    return run_id


def begin(api: Api, run_id: str, *, tool: str = "shop.order", **fields: Any) -> Answered:
    return api.post(f"runs/{run_id}/calls", {"tool": tool, "args": {"item": "book"}, **fields})


def succeed(api: Api, run_id: str, *, result: Any = None, **fields: Any) -> int:
    """Make one call and report its success; returns its step."""
    begun = begin(api, run_id, **fields)
    assert begun.status == 201, begun.data
    number: int = begun.data["step"]
    body = {"status": "succeeded", "result": {"id": f"o{number}"} if result is None else result}
    assert api.post(f"runs/{run_id}/steps/{number}/complete", body).status == 200
    return number
