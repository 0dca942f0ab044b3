"""Every route with every kind of caller: the right answer each. A route without an entry here fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from typing import Any

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from reversi_site.kit.api.views import OperationView
from tests.api.world import Api, World, begin, open_run, succeed

ME, OTHER = "agent", "other_agent"
READERS: Set[str | None] = {ME, "operator", "admin", "auditor"}
CALLERS = (None, ME, OTHER, "operator", "reviewer", "approver", "admin", "auditor", "revoked", "expired")
NOBODY = {None, "revoked", "expired"}
EVERYBODY = set(CALLERS) - NOBODY
PUBLIC = {"v1/openapi.json": ("GET",), "v1/docs": ("GET",)}


@dataclass(frozen=True, slots=True)
class Prepared:
    """One request that would succeed for whoever may make it."""

    path: str
    body: Any = None


@dataclass(frozen=True, slots=True)
class Entry:
    """Who may use a route, what they are answered, and how a request to it is made."""

    allowed: Set[str | None]
    status: int
    prepare: Callable[[World], Prepared]
    is_of_a_run: bool = True


def of_run(suffix: str = "", body: Any = None) -> Callable[[World], Prepared]:
    return lambda world: Prepared(f"runs/{open_run(world.agent)}{suffix}", body)


def of_step(suffix: str = "", body: Any = None) -> Callable[[World], Prepared]:
    def prepare(world: World) -> Prepared:
        run_id = open_run(world.agent)
        return Prepared(f"runs/{run_id}/steps/{succeed(world.agent, run_id)}{suffix}", body)

    return prepare


def of_open_step(suffix: str, body: Any) -> Callable[[World], Prepared]:
    def prepare(world: World) -> Prepared:
        run_id = open_run(world.agent)
        begin(world.agent, run_id)
        return Prepared(f"runs/{run_id}{suffix}", body)

    return prepare


def of_approval(suffix: str = "") -> Callable[[World], Prepared]:
    def prepare(world: World) -> Prepared:
        waiting = begin(world.agent, open_run(world.agent), tool="shop.pay")
        return Prepared(f"approvals/{waiting.data['approval']['id']}{suffix}", {} if suffix else None)

    return prepare


def rolled_back(world: World) -> Prepared:
    run_id = open_run(world.agent)
    assert world.operator.post(f"runs/{run_id}/rollback", {"confirm": True}).status == 202
    return Prepared(f"runs/{run_id}/rollback")


def fixed(path: str, body: Any = None) -> Callable[[World], Prepared]:
    return lambda world: Prepared(path, body)


RUN = "v1/runs/<str:run_id>"
STEP = f"{RUN}/steps/<int:number>"
APPROVAL = "v1/approvals/<str:approval_id>"
CALL = {"tool": "shop.order", "args": {}}
FOUND = {"answers": [{"step": 0, "status": "failed", "note": "nothing there"}]}
MATRIX: dict[tuple[str, str], Entry] = {
    ("GET", "v1/runs"): Entry(EVERYBODY, 200, fixed("runs"), is_of_a_run=False),
    ("POST", "v1/runs"): Entry({ME, OTHER, "admin"}, 201, fixed("runs", {"scope": []}), is_of_a_run=False),
    ("GET", RUN): Entry(READERS, 200, of_run()),
    ("POST", f"{RUN}/close"): Entry({ME, "operator", "admin"}, 200, of_run("/close")),
    ("GET", f"{RUN}/steps"): Entry(READERS, 200, of_run("/steps")),
    ("GET", STEP): Entry(READERS, 200, of_step()),
    ("GET", f"{RUN}/events"): Entry(READERS, 200, of_run("/events")),
    ("POST", f"{RUN}/calls"): Entry({ME}, 201, of_run("/calls", CALL)),
    ("POST", f"{STEP}/complete"): Entry({ME}, 200, of_open_step("/steps/0/complete", {"status": "failed"})),
    ("GET", f"{RUN}/plan"): Entry(READERS, 200, of_run("/plan")),
    ("GET", f"{RUN}/rollback"): Entry(READERS, 200, rolled_back),
    ("POST", f"{RUN}/rollback"): Entry({"operator", "admin"}, 202, of_run("/rollback", {"confirm": True})),
    ("POST", f"{RUN}/verify"): Entry({"operator", "admin"}, 202, of_run("/verify")),
    ("GET", f"{RUN}/report"): Entry(READERS, 200, of_run("/report")),
    ("POST", f"{RUN}/reconcile"): Entry({ME, "operator", "admin"}, 200, of_open_step("/reconcile", FOUND)),
    ("POST", f"{STEP}/resolve"): Entry(
        {"operator", "admin"}, 200, of_open_step("/steps/0/resolve", {"status": "failed", "note": "looked"})
    ),
    ("POST", f"{STEP}/compensation"): Entry({ME, "operator", "admin"}, 200, of_step("/compensation", {"worker": "w1"})),
    # Whoever may, is told that the lease is none: that it may be asked is all that counts here.
    ("POST", f"{STEP}/compensation/complete"): Entry(
        {ME, "operator", "admin"}, 409, of_step("/compensation/complete", {"lease": "x", "status": "succeeded"})
    ),
    ("GET", "v1/approvals"): Entry(EVERYBODY, 200, fixed("approvals"), is_of_a_run=False),
    ("GET", APPROVAL): Entry(EVERYBODY - {OTHER}, 200, of_approval()),
    ("POST", f"{APPROVAL}/approve"): Entry({"approver"}, 200, of_approval("/approve"), is_of_a_run=False),
    ("POST", f"{APPROVAL}/deny"): Entry({"approver"}, 200, of_approval("/deny"), is_of_a_run=False),
    ("GET", "v1/halts"): Entry(EVERYBODY - {ME, OTHER}, 200, fixed("halts"), is_of_a_run=False),
    ("POST", "v1/halt"): Entry(
        {"operator", "admin"},
        201,
        fixed("halt", {"reason": "look", "scope": {"tool": "nothing"}}),
        is_of_a_run=False,
    ),
    ("POST", "v1/resume"): Entry({"admin"}, 200, fixed("resume"), is_of_a_run=False),
}


def patterns(resolver: URLResolver, prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    for pattern in resolver.url_patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from patterns(pattern, route)
        else:
            yield route, pattern


def routes() -> set[tuple[str, str]]:
    """Return every method of every route under `/v1`, as the resolver has them."""
    found = set()
    for route, pattern in patterns(get_resolver()):
        view: Any = getattr(pattern.callback, "cls", object)
        if route in PUBLIC or not route.startswith("v1/"):
            continue
        assert issubclass(view, OperationView), route
        handlers = {name.upper() for name in ("get", "post", "put", "patch", "delete") if hasattr(view, name)}
        assert handlers == set(view.rights), f"{route}: what it handles and what it declares differ"
        assert handlers == set(view.answers), f"{route}: what it handles and what it describes differ"
        found |= {(method, route) for method in handlers}
    return found


def test_every_route_has_its_entry_and_every_entry_its_route() -> None:
    assert routes() == set(MATRIX)


@pytest.mark.parametrize(("method", "route"), MATRIX, ids=lambda value: value)
def test_route_answers_every_caller_rightly(world: World, method: str, route: str) -> None:
    entry = MATRIX[method, route]
    assert {who: ask(world, entry, method, who) for who in CALLERS} == {who: expected(entry, who) for who in CALLERS}


def expected(entry: Entry, who: str | None) -> tuple[int, str | None]:
    if who in NOBODY:
        return 401, "auth_required"
    if who in entry.allowed:
        return entry.status, None
    is_foreign = entry.is_of_a_run and who != ME
    return 403, "belongs to another principal" if is_foreign and who == OTHER else "refused"


def ask(world: World, entry: Entry, method: str, who: str | None) -> tuple[int, str | None]:
    request = entry.prepare(world)
    api = Api(None) if who is None else world.api(who)
    answer = api.send(method, request.path, content=b"" if request.body is None else json.dumps(request.body).encode())
    if answer.status == 401:
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="reversi"'
        return 401, answer.data["code"]
    if answer.status != 403:
        return answer.status, None
    is_told = "belongs to another principal" in answer.data["detail"]
    return 403, "belongs to another principal" if is_told and who == OTHER else "refused"
