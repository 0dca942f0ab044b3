"""Every page and action of the console with every kind of person: the right answer each. One without an entry fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

import pytest
from django.contrib import admin
from django.core.exceptions import ImproperlyConfigured
from django.http.response import HttpResponseBase
from django.test import Client
from django.urls import URLPattern, URLResolver, reverse

from approvals.core.halts import HaltScope
from approvals.operations.halts import add_halt
from approvals.operations.keys import create_key
from rollback.operations.jobs import start_rollback
from rollback.queries import get_plan
from tests.console.agents import ask_to_wire, lose_answer, order, start_run
from tests.console.conftest import PEOPLE, Console

# Every person of `PEOPLE`, and nobody at all.
CALLERS = (None, *PEOPLE)
SIGNED_IN: frozenset[str | None] = frozenset(PEOPLE) - {"nobody"}
READERS: frozenset[str | None] = frozenset({"agent", "operator", "admin", "auditor"})
OPERATORS: frozenset[str | None] = frozenset({"operator", "admin"})
LOOKERS = SIGNED_IN - {"agent", "other_agent"}
AUDITORS: frozenset[str | None] = frozenset({"auditor", "admin"})
ADMINS: frozenset[str | None] = frozenset({"admin"})
RUN = "run_matrix"
PUBLIC = frozenset({"login"})
LOGIN, FORBIDDEN, LET_IN = "sign in first", "forbidden", "let in"
Parts = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Entry:
    """Who may, with what method, on what, sending what."""

    allowed: frozenset[str | None]
    method: str = "get"
    prepare: Callable[[Console], Parts] = lambda console: {}
    sends: Callable[[Console], Mapping[str, object]] = field(default=lambda console: {})


def run(console: Console) -> Parts:
    start_run(principal="agent", run_id=RUN)
    order(console.world, RUN, "book", principal="agent")
    return {"run_id": RUN}


def job(console: Console) -> Parts:
    return {**run(console), "job_id": start_rollback(run_id=RUN, actor="operator", now=datetime.now(UTC)).id}


def step(console: Console) -> Parts:
    return {**run(console), "number": 0}


def open_step(console: Console) -> Parts:
    start_run(principal="agent", run_id=RUN)
    lose_answer(console.world, RUN, "lamp", principal="agent")
    return {"run_id": RUN, "number": 0}


def approval(console: Console) -> Parts:
    start_run(principal="agent", run_id=RUN)
    return {"approval_id": ask_to_wire(console.world, RUN, principal="agent").id}


def halt(console: Console) -> Parts:
    halted, _ = add_halt(reason="look", scope=HaltScope(tool="x"), actor="operator", now=datetime.now(UTC))
    return {"halt_id": halted.id}


def key(console: Console) -> Parts:
    return {"prefix": create_key(owner="agent", actor="admin", now=datetime.now(UTC))[0].prefix}


def person(console: Console) -> Parts:
    return {"username": "nobody"}


def confirmed(console: Console) -> Mapping[str, object]:
    digest = get_plan(run_id=RUN, now=datetime.now(UTC)).digest
    return {"digest": digest, "attempts": 1, "is_read": "on"}


def sending(**values: object) -> Callable[[Console], Mapping[str, object]]:
    return lambda console: values


reading = partial(Entry, READERS)
acting = partial(Entry, method="post")
MATRIX: Mapping[tuple[str, str], Entry] = {
    ("get", "index"): Entry(SIGNED_IN),
    # Who is not signed in, or may not, is signed out for good and sent to the first page.
    ("post", "logout"): acting(frozenset(CALLERS)),
    ("get", "password_change"): Entry(SIGNED_IN),
    ("get", "password_change_done"): Entry(SIGNED_IN),
    ("get", "runs"): Entry(READERS | {"other_agent"}),
    ("get", "run"): reading(prepare=run),
    ("get", "plan"): reading(prepare=run),
    ("get", "events"): reading(prepare=run),
    ("get", "report"): reading(prepare=run),
    ("get", "step"): reading(prepare=step),
    ("get", "job"): reading(prepare=job),
    ("get", "job_progress"): reading(prepare=job),
    ("get", "rollback"): Entry(OPERATORS, prepare=run),
    ("post", "rollback"): acting(OPERATORS, prepare=run, sends=confirmed),
    ("post", "verify"): acting(OPERATORS, prepare=run),
    ("post", "close"): acting(OPERATORS | {"agent"}, prepare=run),
    ("get", "resolve"): Entry(OPERATORS, prepare=open_step),
    ("post", "resolve"): acting(OPERATORS, prepare=open_step, sends=sending(status="failed", note="looked")),
    ("get", "approvals"): Entry(SIGNED_IN),
    ("get", "approval"): Entry(SIGNED_IN - {"other_agent"}, prepare=approval),
    ("post", "vote"): acting(frozenset({"approver"}), prepare=approval, sends=sending(decision="approve")),
    ("get", "halts"): Entry(LOOKERS),
    ("post", "halt_add"): acting(OPERATORS, sends=sending(reason="look", tool="nothing")),
    ("post", "halt_lift"): acting(ADMINS, prepare=halt),
    ("post", "halt_lift_all"): acting(ADMINS, prepare=lambda console: halt(console) and {}),
    ("get", "keys"): Entry(AUDITORS),
    ("get", "key_create"): Entry(ADMINS),
    ("post", "key_create"): acting(ADMINS, sends=sending(owner="agent", scope="*", modes="enforce")),
    ("post", "key_revoke"): acting(ADMINS, prepare=key),
    ("get", "people"): Entry(ADMINS),
    ("post", "person_add"): acting(ADMINS, sends=sending(username="newcomer")),
    ("get", "person"): Entry(ADMINS, prepare=person),
    ("post", "person_roles"): acting(ADMINS, prepare=person, sends=sending(groups="finance")),
    ("post", "person_password"): acting(ADMINS, prepare=person, sends=sending(password="long enough")),
    ("get", "governance"): Entry(AUDITORS),
    ("get", "records"): Entry(AUDITORS),
}


def patterns(found: list[URLPattern | URLResolver]) -> Iterator[URLPattern]:
    for pattern in found:
        if isinstance(pattern, URLResolver):
            yield from patterns(pattern.url_patterns)
        else:
            yield pattern


def names() -> set[str]:
    """The names of the console's addresses, but for that which catches what is none."""
    return {pattern.name for pattern in patterns(admin.site.get_urls()) if pattern.name is not None}


def record_names() -> set[str]:
    return {name for name in names() if name.endswith(("_changelist", "_change")) and name != "password_change"}


def ask(client: Client, method: str, name: str, parts: Parts, sent: Mapping[str, object]) -> HttpResponseBase:
    address = reverse(f"admin:{name}", kwargs=dict(parts))
    return client.post(address, dict(sent)) if method == "post" else client.get(address)


def verdict(answer: HttpResponseBase) -> str:
    if answer.status_code == 403:
        return FORBIDDEN
    if answer.status_code == 302 and answer.headers["Location"].startswith(reverse("admin:login")):
        return LOGIN
    assert answer.status_code in (200, 302), (answer.status_code, getattr(answer, "content", b"")[:2000])
    return LET_IN


def expected(allowed: frozenset[str | None], who: str | None) -> str:
    if who in allowed:
        return LET_IN
    return LOGIN if who in (None, "nobody") else FORBIDDEN


def test_every_page_has_its_entry_and_every_entry_its_page() -> None:
    assert names() - record_names() - PUBLIC == {name for _, name in MATRIX}


def test_only_what_is_read_can_be_opened_and_only_what_acts_takes_a_form(console: Console) -> None:
    client = console.client("admin")
    acts = {name for method, name in MATRIX if method == "post"}
    only_acts = acts - {name for method, name in MATRIX if method == "get"} - {"logout"}
    only_pages = {name for method, name in MATRIX if method == "get"} - acts - {"index", "password_change_done"}
    parts = {**job(console), "number": 0, "halt_id": "h", "prefix": "p", "username": "nobody", "approval_id": "a"}

    def answer(method: str, name: str) -> int:
        pattern = next(each for each in patterns(admin.site.get_urls()) if each.name == name)
        needed = {part: parts[part] for part in pattern.pattern.converters}
        return ask(client, method, name, needed, {}).status_code

    assert {name: answer("get", name) for name in only_acts} == dict.fromkeys(only_acts, 405)
    assert {name: answer("post", name) for name in only_pages - {"password_change"}} == dict.fromkeys(
        only_pages - {"password_change"}, 405
    )


@pytest.mark.parametrize("who", CALLERS)
@pytest.mark.parametrize(("method", "name"), MATRIX)
def test_page_answers_everybody_rightly(console: Console, method: str, name: str, who: str | None) -> None:
    entry = MATRIX[method, name]
    parts = entry.prepare(console)

    answer = ask(console.client(who), method, name, parts, entry.sends(console))

    assert verdict(answer) == expected(entry.allowed, who)


@pytest.mark.parametrize("who", CALLERS)
def test_records_are_for_who_may_export(console: Console, who: str | None) -> None:
    run(console)
    client = console.client(who)
    lists = [name for name in sorted(record_names()) if name.endswith("_changelist")]
    rows = [reverse("admin:ledger_run_change", args=[RUN]), reverse("admin:ledger_governanceevent_change", args=[0])]

    answers = [verdict(client.get(address)) for address in (*(reverse(f"admin:{name}") for name in lists), *rows)]

    assert answers == [expected(AUDITORS, who)] * (len(lists) + len(rows))


def test_only_read_only_tables_of_ours_have_records() -> None:
    from django.contrib.auth.models import Group

    with pytest.raises(ImproperlyConfigured, match="read-only"):
        admin.site.register(Group)
    assert {name.partition("_")[0] for name in record_names()} == {"ledger", "approvals", "rollback"}


def test_records_cannot_be_changed(console: Console) -> None:
    run(console)
    address = reverse("admin:ledger_run_change", args=[RUN])

    answer = console.client("admin").post(address, {"state": "closed"})

    assert answer.status_code == 403
    assert {name.rpartition("_")[2] for name in record_names()} == {"changelist", "change"}


@pytest.mark.parametrize(("method", "name"), [place for place in MATRIX if place[0] == "post"])
def test_nothing_is_done_without_the_token_of_a_page(console: Console, method: str, name: str) -> None:
    entry = MATRIX[method, name]
    parts = entry.prepare(console)
    person = min(str(who) for who in entry.allowed & SIGNED_IN)

    answer = ask(console.client(person, checks_csrf=True), method, name, parts, entry.sends(console))

    assert answer.status_code == 403
    assert "was not sent from this console" in getattr(answer, "content", b"").decode()


def test_unknown_addresses_say_so(console: Console) -> None:
    assert console.client("admin").get("/console/nothing/").status_code == 404
    assert verdict(console.client(None).get("/console/nothing/")) == LOGIN
