"""Halts, keys and people."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.sessions.models import Session

from approvals.core.halts import HaltScope
from approvals.operations.keys import authenticate
from approvals.queries import get_caller, list_api_keys, list_halts
from tests.console.conftest import PASSWORD, Console
from tests.console.reading import NOW, RUN, next_page, post, run_of, sign_in, text_of, url, words_of


def test_a_halt_is_added_shown_everywhere_and_lifted(console: Console) -> None:
    run_of(console)
    client = console.client("admin")
    sent = {"reason": "something is wrong", "tool": "shop.*", "actor": " ", "run": ""}

    added = next_page(client, url("halt_add"), sent)
    halt = list_halts()[0]
    banner = text_of(console.client("auditor"), url("run", run_id=RUN))
    lifted = next_page(client, url("halt_lift", halt_id=halt.id), {})

    assert "New calls that match are stopped. 0 matching calls are in flight." in added
    assert halt.scope == HaltScope(tool="shop.*")
    assert "Some new calls are stopped" in banner
    assert "something is wrong" in banner
    assert "The halt is lifted." in lifted
    assert list_halts() == []
    assert "new calls are stopped" not in text_of(client, url("index"))


def test_a_halt_of_everything_says_so_and_counts_calls_in_flight(console: Console) -> None:
    from approvals.operations.calls import begin_call
    from tests.console.world import shop

    run_of(console)
    args = {"item": "x", "amount": 1}
    begin_call(
        run_id=RUN, principal="agent", tool="shop.order", args=args, now=NOW, observed_by="caller", snapshot=shop()
    )
    client = console.client("operator")

    page = next_page(client, url("halt_add"), {"reason": "stop"})

    assert "1 matching call is in flight." in page
    assert "All new calls are stopped" in page
    assert "Lift" not in page


def test_a_halt_without_a_reason_is_not_added(console: Console) -> None:
    post(console.client("operator"), url("halt_add"), {"reason": " ", "tool": "x"}, status=400)

    assert list_halts() == []


def test_lifting_what_does_not_stand_changes_nothing(console: Console) -> None:
    client = console.client("admin")

    assert client.post(url("halt_lift", halt_id="halt_none")).status_code == 404
    assert "It was lifted before." in next_page(client, url("halt_lift_all"), {})


def test_a_key_is_shown_once_and_works(console: Console) -> None:
    client = console.client("admin")
    sent = {
        "owner": "agent",
        "label": "billing",
        "roles": ["agent"],
        "scope": "shop:*\n\n payments:read ",
        "modes": ["enforce", "observe"],
        "environment": "prod",
        "expires_on": "2999-12-31",
    }

    page = post(client, url("key_create"), sent, status=200)
    token = re.search(r"rk_[a-z0-9]+_[A-Za-z0-9]+", page)
    assert token

    caller = authenticate(token=token[0], now=NOW)
    assert caller.username == "agent"
    assert caller.limits is not None
    assert caller.limits.scope == ("shop:*", "payments:read")
    assert caller.limits.environment == "prod"
    assert list_api_keys()[0].expires_at == datetime(3000, 1, 1, tzinfo=UTC)
    secret = token[0].rpartition("_")[2]
    later = [text_of(client, url("keys")), text_of(client, url("governance"))]
    later += [str(session.get_decoded()) for session in Session.objects.all()]
    assert all(secret not in text for text in later)


@pytest.mark.parametrize(
    ("change", "status", "told"),
    [
        ({"owner": "who"}, 400, "not one of the available choices"),
        ({"roles": ["admin"]}, 409, "Not made."),
        ({"modes": []}, 400, "This field is required"),
        ({"expires_on": "2000-01-01"}, 409, "must be in the future"),
        ({"expires_on": "soon"}, 400, "Enter a valid date"),
    ],
)
def test_a_key_that_cannot_be_is_not_made(console: Console, change: dict[str, Any], status: int, told: str) -> None:
    sent = {"owner": "agent", "scope": "*", "modes": ["enforce"], **change}

    page = post(console.client("admin"), url("key_create"), sent, status=status)

    assert told in words_of(page)
    assert list_api_keys() == []


def test_a_revoked_key_is_marked_and_keeps_no_button(console: Console) -> None:
    client = console.client("admin")
    post(client, url("key_create"), {"owner": "agent", "scope": "", "modes": ["enforce"]}, status=200)
    prefix = list_api_keys()[0].prefix

    page = next_page(client, url("key_revoke", prefix=prefix), {})

    assert f"The key rk_{prefix} of agent is revoked." in page
    assert "revoked by admin" in page
    assert url("key_revoke", prefix=prefix) not in text_of(client, url("keys"))


def test_a_person_is_added_given_roles_and_signs_in(console: Console) -> None:
    client = console.client("admin")
    sent = {"username": "dana", "roles": ["operator"], "groups": "finance, legal", "password": PASSWORD}

    added = next_page(client, url("person_add"), sent)
    changed = next_page(client, url("person_roles", username="dana"), {"roles": ["auditor"], "groups": "legal"})
    again = post(client, url("person_add"), sent, status=409)

    assert "dana was added." in added
    assert "dana now belongs to auditor, legal." in changed
    assert "dana exists already" in again
    assert get_caller("dana").roles == {"auditor", "legal"}
    assert sign_in("dana", PASSWORD).headers["Location"] == url("index")


def test_nobody_takes_their_own_administration_away(console: Console) -> None:
    page = post(console.client("admin"), url("person_roles", username="admin"), {"roles": ["auditor"]}, status=409)

    assert "you cannot take the role admin from yourself" in page
    assert get_caller("admin").roles == {"admin"}


@pytest.mark.parametrize(
    ("name", "sent", "status"),
    [
        ("person_add", {"username": "a b"}, 409),
        ("person_add", {"username": ""}, 400),
        ("person_add", {"username": "dana", "groups": "<b>"}, 409),
        ("person_password", {"password": "short"}, 409),
        ("person_password", {"password": ""}, 400),
        ("person_roles", {"roles": ["king"]}, 400),
    ],
)
def test_people_are_not_made_up(console: Console, name: str, sent: dict[str, Any], status: int) -> None:
    parts = {} if name == "person_add" else {"username": "reviewer"}

    post(console.client("admin"), url(name, **parts), sent, status=status)

    assert get_caller("reviewer").roles == {"reviewer"}


def test_somebody_who_is_not_there_is_not_found(console: Console) -> None:
    assert console.client("admin").get(url("person", username="ghost")).status_code == 404
