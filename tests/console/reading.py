"""Read the console's pages as a person would, and send its forms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from html import unescape
from typing import Any

from django.test import Client
from django.urls import reverse

from rollback.queries import get_plan
from tests.console.agents import order, start_run
from tests.console.conftest import Console

RUN = "run_pages"
NOW = datetime.now(UTC)


def url(name: str, /, **parts: object) -> str:
    return reverse(f"admin:{name}", kwargs=parts)


def text_of(client: Client, address: str, *, status: int = 200) -> str:
    answer = client.get(address)
    assert answer.status_code == status, answer.content.decode()[:3000]
    return answer.content.decode()


def words_of(page: str) -> str:
    """The page as it reads: without tags, white space as single blanks."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


def post(client: Client, address: str, sent: Mapping[str, Any] | None = None, *, status: int = 302) -> str:
    answer = client.post(address, dict(sent or {}))
    assert answer.status_code == status, answer.content.decode()[:3000]
    return answer.content.decode()


def next_page(client: Client, address: str, sent: Mapping[str, Any]) -> str:
    answer = client.post(address, dict(sent), follow=True)
    assert answer.status_code == 200
    return words_of(answer.content.decode())


def confirmed(run_id: str = RUN, **more: object) -> dict[str, object]:
    return {"digest": get_plan(run_id=run_id, now=NOW).digest, "attempts": 1, "is_read": "on", **more}


def run_of(console: Console, *items: str, run_id: str = RUN, **fields: Any) -> str:
    start_run(principal="agent", run_id=run_id, **fields)
    for item in items:
        order(console.world, run_id, item, principal="agent")
    return run_id


def sign_in(name: str, password: str) -> Any:
    return Client().post(url("login"), {"username": name, "password": password, "next": url("index")})
