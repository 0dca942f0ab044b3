"""API keys: shown once, stored as a hash, never more than their owner (D33)."""

import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals.core.api_keys import prefix_of
from approvals.core.errors import (
    BadPerson,
    KeyExpired,
    KeyNotFound,
    KeyRevoked,
    KeyUnknown,
    MoreThanOwner,
    NotAuthenticated,
    PersonNotFound,
)
from approvals.core.people import Limits
from approvals.models import ApiKey
from approvals.operations.keys import authenticate, create_key, revoke_key
from approvals.operations.people import grant_roles, revoke_roles
from approvals.queries import get_api_key, list_api_keys
from ledger.models import GovernanceEvent
from tests.approvals.factories import LATER, NOW
from tests.approvals.people import ROOT, acts, make_key, make_user
from tests.databases import Database

MINUTE = timedelta(minutes=1)


def prefix(token: str) -> str:
    found = prefix_of(token)
    assert found is not None
    return found


def test_create_key_shows_the_key_once(db: Database) -> None:
    token = make_key(label="for the night run", expires_at=NOW + MINUTE)

    assert re.fullmatch(r"rk_[a-z0-9]{10}_[A-Za-z0-9]{43}", token)
    stored = json.dumps(list(ApiKey.objects.values()), default=str)
    logged = b"".join(bytes(event.data) for event in GovernanceEvent.objects.all()).decode()
    secret = token.rpartition("_")[2]
    assert secret not in stored + logged
    assert prefix(token) in stored
    assert acts() == ["user_created", "key_created"]
    record = get_api_key(prefix(token))
    assert (record.owner, record.label, record.created_by) == ("bot", "for the night run", ROOT)
    assert [key.prefix for key in list_api_keys(owner="bot")] == [record.prefix]
    assert list_api_keys(owner="dana") == []


def test_authenticate_returns_the_owner_with_the_limits_of_the_key(db: Database) -> None:
    token = make_key(
        roles=("agent", "operator"),
        scope=["shop:*"],
        modes=["enforce", "observe"],
        fixed_actor="billing",
        fixed_tenant="acme",
        fixed_environment="live",
    )

    caller = authenticate(token=token, now=NOW)

    assert (caller.username, caller.roles, caller.key_prefix) == (
        "bot",
        frozenset({"agent", "operator"}),
        prefix(token),
    )
    assert caller.limits == Limits(("shop:*",), ("enforce", "observe"), "billing", "acme", "live")


def test_a_key_enforces_everything_in_scope_unless_told_otherwise(sqlite_db: Database) -> None:
    assert authenticate(token=make_key(), now=NOW).limits == Limits(("*",), ("enforce",))


def test_a_key_has_only_the_roles_it_was_made_for(sqlite_db: Database) -> None:
    make_user(name="bot", roles=("agent", "operator"))
    _, token = create_key(owner="bot", actor=ROOT, now=NOW, roles=["agent"])

    assert authenticate(token=token, now=NOW).roles == {"agent"}


def test_a_key_loses_at_once_what_its_owner_loses(db: Database) -> None:
    limited, unlimited = make_key(roles=("agent", "operator")), ""
    _, unlimited = create_key(owner="bot", actor=ROOT, now=NOW, roles=["agent", "operator"])
    revoke_roles(username="bot", roles=["operator"], actor=ROOT, now=NOW)
    grant_roles(username="bot", roles=["auditor"], actor=ROOT, now=NOW)

    assert authenticate(token=unlimited, now=NOW).roles == {"agent"}
    assert authenticate(token=limited, now=NOW).roles == {"agent", "auditor"}


def test_create_key_refuses_more_than_the_owner_has(db: Database) -> None:
    make_user(name="bot", roles=("agent",))

    with pytest.raises(MoreThanOwner, match="bot is not admin and not operator"):
        create_key(owner="bot", actor=ROOT, now=NOW, roles=["agent", "operator", "admin"])

    assert not ApiKey.objects.exists()


BAD: dict[str, dict[str, Any]] = {
    "mode": {"modes": ["sideways"]},
    "no mode": {"modes": []},
    "blank scope": {"scope": [" "]},
    "blank tenant": {"fixed_tenant": ""},
    "past": {"expires_at": NOW},
    "role": {"roles": ["Admin"]},
}


@pytest.mark.parametrize("case", BAD)
def test_create_key_refuses(sqlite_db: Database, case: str) -> None:
    make_user(name="bot", roles=("agent",))

    with pytest.raises(BadPerson):
        create_key(owner="bot", actor=ROOT, now=NOW, **BAD[case])


def test_create_key_needs_an_owner(sqlite_db: Database) -> None:
    with pytest.raises(PersonNotFound):
        create_key(owner="nobody", actor=ROOT, now=NOW)


STRANGERS: dict[str, Callable[[str], str]] = {
    "nothing": lambda token: "",
    "no key at all": lambda token: "Bearer",
    "another prefix": lambda token: token.replace(prefix(token), "a" * 10),
    "another secret": lambda token: token[:-1] + ("a" if token[-1] != "a" else "b"),
    "shortened": lambda token: token[:-1],
    "prolonged": lambda token: token + "a",
    "a line break": lambda token: token + "\n",
    "a zero byte": lambda token: token[:-1] + "\0",
    "capitals": lambda token: token.upper(),
    "a lone surrogate": lambda token: token[:-1] + "\ud800",
}


@pytest.mark.parametrize("case", STRANGERS)
def test_authenticate_does_not_know(db: Database, case: str) -> None:
    token = make_key()

    with pytest.raises(KeyUnknown):
        authenticate(token=STRANGERS[case](token), now=NOW)


def test_authenticate_refuses_an_expired_key(db: Database) -> None:
    token = make_key(expires_at=NOW + MINUTE)

    authenticate(token=token, now=NOW + MINUTE - timedelta(seconds=1))
    with pytest.raises(KeyExpired):
        authenticate(token=token, now=NOW + MINUTE)


def test_authenticate_refuses_a_revoked_key(db: Database) -> None:
    token = make_key()

    first = revoke_key(prefix=prefix(token), actor="dana", now=NOW)
    again = revoke_key(prefix=prefix(token), actor="eli", now=LATER)

    assert first == again
    assert (first.revoked_by, first.is_usable(LATER)) == ("dana", False)
    assert acts().count("key_revoked") == 1
    with pytest.raises(KeyRevoked):
        authenticate(token=token, now=LATER)


def test_authenticate_refuses_the_key_of_somebody_out_of_use(sqlite_db: Database) -> None:
    token = make_key()
    User.objects.update(is_active=False)

    with pytest.raises(KeyRevoked):
        authenticate(token=token, now=NOW)


def test_only_who_holds_the_key_learns_that_it_was_revoked_or_has_expired(sqlite_db: Database) -> None:
    token = make_key(expires_at=NOW + MINUTE)
    revoke_key(prefix=prefix(token), actor=ROOT, now=NOW)

    with pytest.raises(KeyUnknown):
        authenticate(token=STRANGERS["another secret"](token), now=NOW + 2 * MINUTE)


def test_refusals_differ_by_code_and_not_in_what_is_said() -> None:
    errors = [KeyUnknown(), KeyExpired(), KeyRevoked()]

    assert len({error.code for error in errors}) == 3
    assert {str(error) for error in errors} == {str(NotAuthenticated())}


def test_a_key_that_is_not_there_cannot_be_revoked(sqlite_db: Database) -> None:
    with pytest.raises(KeyNotFound):
        revoke_key(prefix="a" * 10, actor=ROOT, now=NOW)
    with pytest.raises(KeyNotFound):
        get_api_key("a" * 10)


def test_last_use_is_noted_at_most_once_a_minute(db: Database) -> None:
    token = make_key()
    seconds = timedelta(seconds=1)

    seen = []
    for passed in (0 * seconds, 59 * seconds, 60 * seconds, 61 * seconds):
        authenticate(token=token, now=NOW + passed)
        seen.append(get_api_key(prefix(token)).last_used_at)

    assert seen == [NOW, NOW, NOW + MINUTE, NOW + MINUTE]


def test_authenticating_costs_two_reads_once_the_use_is_noted(db: Database) -> None:
    token = make_key()
    authenticate(token=token, now=NOW)

    with CaptureQueriesContext(connection) as captured:
        authenticate(token=token, now=LATER)

    assert [query["sql"][:6] for query in captured.captured_queries] == ["SELECT", "SELECT"]
