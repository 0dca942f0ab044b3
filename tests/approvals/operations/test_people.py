"""Users, roles and groups of approvers (D33)."""

import pytest
from django.contrib.auth import authenticate as sign_in
from django.contrib.auth.models import Group, User

from approvals.core.errors import BadPerson, PersonNotFound
from approvals.operations.people import (
    ensure_first_admin,
    ensure_user,
    grant_roles,
    revoke_roles,
    set_password,
    setup_roles,
)
from approvals.queries import get_caller, list_people
from ledger.queries import check_governance_chain
from tests.approvals.factories import NOW
from tests.approvals.people import ROOT, acts, make_user
from tests.databases import Database


def test_setup_roles_makes_what_is_missing(db: Database) -> None:
    Group.objects.create(name="agent")

    made = setup_roles(actor=ROOT, now=NOW)

    assert made == ("operator", "reviewer", "admin", "auditor")
    assert setup_roles(actor=ROOT, now=NOW) == ()
    assert acts() == ["roles_set_up"]


def test_ensure_user_makes_a_user_that_cannot_sign_in_yet(db: Database) -> None:
    person, is_new = ensure_user(username="dana", roles=["finance", "operator", "finance"], actor=ROOT, now=NOW)

    assert (person.username, person.roles, is_new) == ("dana", ("finance", "operator"), True)
    assert not User.objects.get(username="dana").has_usable_password()
    assert get_caller("dana").roles == {"finance", "operator"}


def test_ensure_user_leaves_an_existing_one_alone(db: Database) -> None:
    make_user(roles=("operator",))

    person, is_new = ensure_user(username="dana", roles=["admin"], actor=ROOT, now=NOW)

    assert (person.roles, is_new) == (("operator",), False)
    assert acts() == ["user_created"]


BAD_NAMES = {
    "a local principal": ("local:ada", "operator"),
    "blank": ("", "operator"),
    "spaces": ("da na", "operator"),
    "line break": ("dana\n", "operator"),
    "too long": ("d" * 151, "operator"),
    "a role in capitals": ("dana", "Admin"),
    "a role with spaces": ("dana", "the boss"),
    "a blank role": ("dana", ""),
    "a role with a line break": ("dana", "finance\n"),
}


@pytest.mark.parametrize("case", BAD_NAMES)
def test_ensure_user_refuses(sqlite_db: Database, case: str) -> None:
    name, role = BAD_NAMES[case]

    with pytest.raises(BadPerson):
        ensure_user(username=name, roles=[role], actor=ROOT, now=NOW)

    assert list_people() == []


def test_roles_are_granted_and_revoked(db: Database) -> None:
    make_user(roles=("operator",))

    granted = grant_roles(username="dana", roles=["finance"], actor=ROOT, now=NOW)
    revoked = revoke_roles(username="dana", roles=["operator", "unheard"], actor=ROOT, now=NOW)

    assert (granted.roles, revoked.roles) == (("finance", "operator"), ("finance",))
    assert acts() == ["user_created", "roles_granted", "roles_revoked"]
    assert check_governance_chain().problems == ()


def test_roles_of_nobody_cannot_be_changed(sqlite_db: Database) -> None:
    with pytest.raises(PersonNotFound):
        grant_roles(username="dana", roles=["finance"], actor=ROOT, now=NOW)
    with pytest.raises(PersonNotFound):
        revoke_roles(username="dana", roles=["finance"], actor=ROOT, now=NOW)


def test_set_password_lets_a_user_sign_in(sqlite_db: Database) -> None:
    make_user()

    set_password(username="dana", password="correct horse", actor=ROOT, now=NOW)

    assert sign_in(username="dana", password="correct horse") is not None
    with pytest.raises(BadPerson):
        set_password(username="dana", password="short", actor=ROOT, now=NOW)


def test_ensure_first_admin_tells_a_password_once(db: Database) -> None:
    name, password = ensure_first_admin(now=NOW)

    assert sign_in(username=name, password=password) is not None
    assert get_caller(name).roles == {"admin"}
    assert ensure_first_admin(now=NOW) == (name, None)


def test_ensure_first_admin_serves_where_the_only_admin_cannot_sign_in(sqlite_db: Database) -> None:
    make_user(name="admin", roles=("admin",))

    name, password = ensure_first_admin(now=NOW)

    assert sign_in(username=name, password=password) is not None


def test_get_caller_knows_who_may_everything_and_who_is_out_of_use(sqlite_db: Database) -> None:
    User.objects.create(username="root", is_superuser=True)
    User.objects.create(username="gone", is_active=False)

    assert get_caller("root").roles == {"admin"}
    assert [(each.username, each.roles, each.is_active) for each in list_people()] == [
        ("gone", (), False),
        ("root", ("admin",), True),
    ]
    for name in ("gone", "nobody"):
        with pytest.raises(PersonNotFound):
            get_caller(name)
