"""API keys: whose there are, making one, which is shown once, and revoking."""

from __future__ import annotations

from http import HTTPStatus

from django.http import HttpResponse
from django.views.decorators.debug import sensitive_variables

from approvals.core.errors import MoreThanOwner
from approvals.core.people import Act
from approvals.core.persons import PersonRecord
from approvals.operations.keys import create_key, revoke_key
from approvals.queries import list_api_keys, list_people
from reversi_site.console.forms import KeyForm
from reversi_site.console.refusals import refusal_of
from reversi_site.console.visit import Visit, address, page


@page(Act.LIST_KEYS, Act.MANAGE_KEYS)
def key_list(visit: Visit) -> HttpResponse:
    """List the keys; none of them can be shown again."""
    keys = [(key, _state(visit, key.is_usable(visit.now), key.revoked_at is not None)) for key in list_api_keys()]
    return visit.show("keys", title="API keys", keys=keys, can_manage=visit.may(Act.MANAGE_KEYS))


def _state(visit: Visit, is_usable: bool, is_revoked: bool) -> str:
    return "usable" if is_usable else "revoked" if is_revoked else "expired"


@page(Act.MANAGE_KEYS)
@sensitive_variables("made")
def key_create(visit: Visit) -> HttpResponse:
    """Make a key and show it, this one time: it is written into no session, message or log."""
    people = [person for person in list_people() if person.is_active]
    form = KeyForm(
        visit.sent,
        owners=[person.username for person in people],
        groups=_groups(people),
        initial={"owner": visit.request.GET.get("owner", "")},
    )
    refused, made = None, []
    if visit.is_sent and form.is_valid():
        refused = refusal_of(lambda: made.append(_create(visit, form)), MoreThanOwner)
    if made:
        key, token = made[0]
        crumbs = [("API keys", address("keys"))]
        return visit.show("key_made", title="New key", crumbs=crumbs, key=key, token=token)
    status = HTTPStatus.CONFLICT if refused else HTTPStatus.BAD_REQUEST if visit.is_sent else HTTPStatus.OK
    return visit.show(
        "key_create",
        title="Make an API key",
        crumbs=[("API keys", address("keys"))],
        status=status,
        form=form,
        refused=refused,
    )


def _groups(people: list[PersonRecord]) -> list[str]:
    return sorted({role for person in people for role in person.roles})


def _create(visit: Visit, form: KeyForm) -> tuple[object, str]:
    data = form.cleaned_data
    return create_key(
        owner=data["owner"],
        actor=visit.caller.username,
        now=visit.now,
        label=data["label"],
        roles=data["roles"] or None,
        scope=data["scope"],
        modes=data["modes"],
        fixed_actor=data["actor"].strip() or None,
        fixed_tenant=data["tenant"].strip() or None,
        fixed_environment=data["environment"].strip() or None,
        expires_at=form.expires_at(),
    )


@page(Act.MANAGE_KEYS)
def key_revoke(visit: Visit, prefix: str) -> HttpResponse:
    """Revoke a key at once."""
    key = revoke_key(prefix=prefix, actor=visit.caller.username, now=visit.now)
    return visit.done(f"The key rk_{key.prefix} of {key.owner} is revoked.", "keys")
