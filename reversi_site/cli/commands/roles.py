"""`reversi roles`: who may do what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from reversi_site.cli import session
from reversi_site.cli.output import emit_json, emit_lines
from reversi_site.cli.parameters import NAME, json_option
from reversi_site.identity import local_principal

if TYPE_CHECKING:
    from approvals.core.persons import PersonRecord


@click.group(short_help="Who may do what.")
def roles() -> None:
    """Set the five roles up, and put users into roles and groups of approvers.

    agent, operator, reviewer, admin and auditor have a meaning of their own; any other name is a group of approvers
    that a manifest can ask for.

    \b
    Examples:
      reversi roles setup
      reversi roles grant dana operator finance
      reversi roles list
    """


@roles.command(short_help="Make the groups of the roles.")
@json_option
def setup(*, is_json: bool) -> None:
    """Make the groups of the five roles where they are missing.

    \b
    Example:
      reversi roles setup
    """
    now = session.open_store()
    from approvals.core.people import Role
    from approvals.operations.people import setup_roles

    made = setup_roles(actor=local_principal(), now=now)
    if is_json:
        emit_json({"roles": [role.value for role in Role], "made": list(made)})
    else:
        emit_lines([f"made {', '.join(made)}" if made else "the five roles are there"])


@roles.command("list", short_help="List the users and what they are.")
@json_option
def list_(*, is_json: bool) -> None:
    """List the users and what they are.

    \b
    Example:
      reversi roles list --json
    """
    session.open_store()
    from approvals.queries import list_people

    people = list_people()
    if is_json:
        emit_json({"users": [_document(person) for person in people]})
    else:
        emit_lines([_line(person) for person in people] or ["no users"])


@roles.command(short_help="Put a user into roles or groups.")
@click.argument("user", type=NAME)
@click.argument("names", type=NAME, nargs=-1, required=True, metavar="ROLE…")
@json_option
def grant(*, user: str, names: tuple[str, ...], is_json: bool) -> None:
    """Put a user into roles or groups of approvers; a user that is missing is created.

    \b
    Example:
      reversi roles grant dana operator finance
    """
    now = session.open_store()
    from approvals.operations.people import ensure_user, grant_roles

    ensure_user(username=user, roles=names, actor=local_principal(), now=now)
    _tell(grant_roles(username=user, roles=names, actor=local_principal(), now=now), is_json)


@roles.command(short_help="Take a user out of roles or groups.")
@click.argument("user", type=NAME)
@click.argument("names", type=NAME, nargs=-1, required=True, metavar="ROLE…")
@json_option
def revoke(*, user: str, names: tuple[str, ...], is_json: bool) -> None:
    """Take a user out of roles or groups; what the user's keys may do shrinks at once.

    \b
    Example:
      reversi roles revoke dana operator
    """
    now = session.open_store()
    from approvals.operations.people import revoke_roles

    _tell(revoke_roles(username=user, roles=names, actor=local_principal(), now=now), is_json)


def _tell(person: PersonRecord, is_json: bool) -> None:
    if is_json:
        emit_json(_document(person))
    else:
        emit_lines([_line(person)])


def _line(person: PersonRecord) -> str:
    return f"{person.username}  {', '.join(_shown(person.roles))}{'' if person.is_active else '  (not active)'}"


def _shown(names: Sequence[str]) -> Iterator[str]:
    yield from names or ["no role"]


def _document(person: PersonRecord) -> dict[str, Any]:
    return {"user": person.username, "roles": list(person.roles), "active": person.is_active}
