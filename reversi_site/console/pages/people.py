"""People: who there is, their roles and groups, and their passwords for this console."""

from __future__ import annotations

from http import HTTPStatus

from django.http import HttpResponse
from django.views.decorators.debug import sensitive_variables

from approvals.core.errors import PersonNotFound
from approvals.core.people import Act, Role
from approvals.core.persons import PersonRecord
from approvals.operations.people import ensure_user, grant_roles, revoke_roles, set_password
from approvals.queries import list_people
from reversi_site.console.forms import PersonForm, PersonPasswordForm, PersonRolesForm
from reversi_site.console.refusals import refusal_of
from reversi_site.console.visit import Visit, address, page

_ROLES = frozenset(role.value for role in Role)


@page(Act.MANAGE_PEOPLE)
def person_list(visit: Visit) -> HttpResponse:
    """List everybody."""
    return _show_all(visit, PersonForm())


def _show_all(
    visit: Visit, form: PersonForm, *, refused: str | None = None, status: HTTPStatus = HTTPStatus.OK
) -> HttpResponse:
    return visit.show("people", title="People", status=status, people=list_people(), form=form, refused=refused)


@page(Act.MANAGE_PEOPLE)
@sensitive_variables()
def person_add(visit: Visit) -> HttpResponse:
    """Make a person; an existing one is left as it is."""
    form = PersonForm(visit.sent)
    if not form.is_valid():
        return _show_all(visit, form, status=HTTPStatus.BAD_REQUEST)
    name, was_new = form.cleaned_data["username"], []

    def add() -> None:
        actor = visit.caller.username
        was_new.append(ensure_user(username=name, roles=form.all_roles(), actor=actor, now=visit.now)[1])
        if was_new[0] and form.cleaned_data["password"]:
            set_password(username=name, password=form.cleaned_data["password"], actor=actor, now=visit.now)

    refused = refusal_of(add)
    if refused is None and not was_new[0]:
        refused = f"{name} exists already: change what they belong to on their page"
    if refused is not None:
        return _show_all(visit, form, refused=refused, status=HTTPStatus.CONFLICT)
    return visit.done(f"{name} was added.", "person", username=name)


def _person(username: str) -> PersonRecord:
    found = next((person for person in list_people() if person.username == username), None)
    if found is None:
        raise PersonNotFound(username)
    return found


@page(Act.MANAGE_PEOPLE)
def person(visit: Visit, username: str) -> HttpResponse:
    """Show a person, with what can be changed."""
    return _show(visit, _person(username))


def _show(
    visit: Visit,
    found: PersonRecord,
    *,
    roles_form: PersonRolesForm | None = None,
    password_form: PersonPasswordForm | None = None,
    refused: str | None = None,
    status: HTTPStatus = HTTPStatus.OK,
) -> HttpResponse:
    initial = {
        "roles": [role for role in found.roles if role in _ROLES],
        "groups": " ".join(role for role in found.roles if role not in _ROLES),
    }
    return visit.show(
        "person",
        title=found.username,
        crumbs=[("People", address("people"))],
        status=status,
        person=found,
        roles_form=roles_form or PersonRolesForm(initial=initial),
        password_form=password_form or PersonPasswordForm(),
        refused=refused,
    )


@page(Act.MANAGE_PEOPLE)
def person_roles(visit: Visit, username: str) -> HttpResponse:
    """Change what a person belongs to: what is new is granted, what is missing is revoked."""
    found, form = _person(username), PersonRolesForm(visit.sent)
    if not form.is_valid():
        return _show(visit, found, roles_form=form, status=HTTPStatus.BAD_REQUEST)
    before, after = frozenset(found.roles), frozenset(form.all_roles())
    if found.username == visit.caller.username and Role.ADMIN in before - after:
        said = "you cannot take the role admin from yourself"
        return _show(visit, found, roles_form=form, refused=said, status=HTTPStatus.CONFLICT)

    def change() -> None:
        who = {"username": username, "actor": visit.caller.username}
        if after - before:
            grant_roles(roles=sorted(after - before), now=visit.now, **who)
        if before - after:
            revoke_roles(roles=sorted(before - after), now=visit.now, **who)

    refused = refusal_of(change)
    if refused is not None:
        return _show(visit, found, roles_form=form, refused=refused, status=HTTPStatus.CONFLICT)
    return visit.done(
        f"{username} now belongs to {', '.join(sorted(after)) or 'nothing'}.", "person", username=username
    )


@page(Act.MANAGE_PEOPLE)
@sensitive_variables()
def person_password(visit: Visit, username: str) -> HttpResponse:
    """Give a person a new password."""
    found, form = _person(username), PersonPasswordForm(visit.sent)
    if not form.is_valid():
        return _show(visit, found, password_form=form, status=HTTPStatus.BAD_REQUEST)
    refused = refusal_of(
        lambda: set_password(
            username=username,
            password=form.cleaned_data["password"],
            actor=visit.caller.username,
            now=visit.now,
        )
    )
    if refused is not None:
        return _show(visit, found, password_form=form, refused=refused, status=HTTPStatus.CONFLICT)
    return visit.done(f"{username} has a new password.", "person", username=username)
