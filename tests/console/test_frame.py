"""Signing in, refusals, and what stands around every page."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from reversi_site.schedules import Job, run_scheduled_job
from tests.console.agents import (
    lose_answer,
)
from tests.console.conftest import PASSWORD, Console
from tests.console.reading import NOW, RUN, post, run_of, sign_in, text_of, url, words_of


@pytest.mark.usefixtures("passwords")
def test_whoever_has_a_role_or_group_signs_in(console: Console) -> None:
    for name in ("agent", "approver", "auditor"):
        assert sign_in(name, PASSWORD).headers["Location"] == url("index")
    for name, password in (("nobody", PASSWORD), ("agent", "wrong"), ("ghost", PASSWORD), ("", "")):
        page = sign_in(name, password).content.decode()
        assert 'role="alert"' in page
        assert "Signed in" not in page


def test_a_role_that_is_taken_away_ends_what_it_allowed(console: Console) -> None:
    client, admin = console.client("operator"), console.client("admin")
    text_of(client, url("runs"))

    post(admin, url("person_roles", username="operator"), {"groups": "finance"})

    assert client.get(url("runs")).status_code == 403
    post(admin, url("person_roles", username="operator"), {})
    assert client.get(url("runs")).headers["Location"].startswith(url("login"))


def test_buttons_are_where_the_acts_are(console: Console) -> None:
    run_of(console, "a")
    lose_answer(console.world, RUN, "lamp", principal="agent")

    def page(who: str, address: str) -> str:
        return text_of(console.client(who), address)

    for who in ("agent", "auditor"):
        assert "Roll back" not in page(who, url("run", run_id=RUN))
        assert "Settle by hand" not in page(who, url("step", run_id=RUN, number=1))
    for who in ("operator", "admin"):
        assert "Roll back" in page(who, url("run", run_id=RUN))
        assert "Settle by hand" in page(who, url("step", run_id=RUN, number=1))
    assert "Stop calls" not in page("auditor", url("halts"))
    assert "Make a key" not in page("auditor", url("keys"))


def test_a_refusal_names_what_is_missing(console: Console) -> None:
    page = text_of(console.client("auditor"), url("key_create"), status=403)

    assert "Not allowed" in page
    assert "manage keys" in page


def test_the_frame_tells_deployment_worker_and_person(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("django.conf.settings.REVERSI_ENVIRONMENT", "production-eu")
    client = console.client("auditor")

    before = words_of(text_of(client, url("index")))
    run_scheduled_job(job=Job.HEARTBEAT, now=NOW)
    after = words_of(text_of(client, url("index")))

    assert "production-eu" in before
    assert "No worker has been seen yet" in before
    assert "Rollbacks are queued and nothing carries them out" in before
    assert "Worker seen" in after
    assert "auditor" in after


def test_the_kill_file_stands_in_the_banner(console: Console, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from django.conf import settings

    file = tmp_path / "kill"
    file.write_text("fire in the server room\n")
    monkeypatch.setattr(settings, "CONFIGURATION", replace(settings.CONFIGURATION, kill_switch_file=file))

    page = words_of(text_of(console.client("agent"), url("index")))

    assert "All new calls are stopped" in page
    assert "fire in the server room" in page


def test_the_chains_are_checked_on_request(console: Console) -> None:
    run_of(console, "a")
    client = console.client("auditor")

    assert "The chain holds" in text_of(client, f"{url('events', run_id=RUN)}?check")
    assert "The chain holds" in text_of(client, f"{url('governance')}?check")


@pytest.mark.usefixtures("passwords")
@pytest.mark.parametrize("is_secure", [False, True])
def test_cookies_that_came_over_https_stay_there(console: Console, is_secure: bool) -> None:
    sent = {"username": "agent", "password": PASSWORD, "next": url("index")}
    answer = Client().post(url("login"), sent, secure=is_secure)

    assert {name: bool(cookie["secure"]) for name, cookie in answer.cookies.items()} == dict.fromkeys(
        ("reversi_session", "reversi_csrf"), is_secure
    )
    assert all(cookie["httponly"] and cookie["samesite"] == "Lax" for cookie in answer.cookies.values())


def test_the_first_address_leads_to_the_console(console: Console) -> None:
    assert Client().get("/").headers["Location"] == url("index")
