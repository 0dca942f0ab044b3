"""`reversi apikey`: keys for agents and programs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from reversi_site.cli import session
from reversi_site.cli.output import emit_json, emit_lines, note, shown_time
from reversi_site.cli.parameters import DURATION, NAME, json_option
from reversi_site.identity import local_principal

if TYPE_CHECKING:
    from approvals.core.api_keys import ApiKeyRecord

USUAL_ROLE = "agent"


@click.group(short_help="Keys for agents and programs.")
def apikey() -> None:
    """Make, list and revoke API keys. A key belongs to a user and never does more than its owner.

    \b
    Examples:
      reversi apikey create billing-agent --role agent --scope 'payments:*' --tenant acme --expires 30d
      reversi apikey list
      reversi apikey revoke k3v9x2m1qa
    """


@apikey.command(short_help="Make a key for a user.")
@click.argument("user", type=NAME)
@click.option(
    "--role", "roles", type=NAME, multiple=True, metavar="R", help="Only this of the owner's roles; repeatable."
)
@click.option(
    "--scope", type=NAME, multiple=True, metavar="P", help="Widest scope of its runs; repeatable, default '*'."
)
@click.option("--mode", "modes", type=click.Choice(["enforce", "observe"]), multiple=True, help="Default enforce only.")
@click.option("--actor", type=NAME, help="Fix the actor of its runs.")
@click.option("--tenant", type=NAME, help="Fix the tenant of its runs.")
@click.option("--environment", type=NAME, help="Fix the environment of its runs.")
@click.option("--expires", type=DURATION, metavar="D", help="How long it works, like 12h or 30d; default for ever.")
@click.option("--label", type=NAME, help="What it is for.")
@json_option
def create(
    *,
    user: str,
    roles: tuple[str, ...],
    scope: tuple[str, ...],
    modes: tuple[str, ...],
    actor: str | None,
    tenant: str | None,
    environment: str | None,
    expires: int | None,
    label: str | None,
    is_json: bool,
) -> None:
    """Make a key for USER and show it, this once, as the last word.

    A user that is missing is created with the roles named, agent if none is. For a user that exists the key can only
    leave roles out.

    \b
    Examples:
      reversi apikey create billing-agent --role agent --scope 'payments:*' --expires 30d
      reversi apikey create dana --role operator
    """
    now = session.open_store()
    from approvals.operations.keys import create_key
    from approvals.operations.people import ensure_user

    by = local_principal()
    person, is_new = ensure_user(username=user, roles=roles or (USUAL_ROLE,), actor=by, now=now)
    record, key = create_key(
        owner=user,
        actor=by,
        now=now,
        label=label or "",
        roles=roles or None,
        scope=scope or ("*",),
        modes=modes or ("enforce",),
        fixed_actor=actor,
        fixed_tenant=tenant,
        fixed_environment=environment,
        expires_at=None if expires is None else now + timedelta(milliseconds=expires),
    )
    if is_new:
        note(f"created the user {user}: {', '.join(person.roles)}")
    if is_json:
        emit_json(record.to_json() | {"key": key})
    else:
        emit_lines([*_lines(record), f"shown once: {key}"])


@apikey.command("list", short_help="List the keys.")
@click.option("--user", type=NAME, help="Only this user's.")
@json_option
def list_(*, user: str | None, is_json: bool) -> None:
    """List the keys; never the keys themselves, which nobody has but who was shown them.

    \b
    Example:
      reversi apikey list --user billing-agent
    """
    session.open_store()
    from approvals.queries import list_api_keys

    found = list_api_keys(owner=user)
    if is_json:
        emit_json({"keys": [record.to_json() for record in found]})
    else:
        emit_lines([line for record in found for line in _lines(record)] or ["no keys"])


@apikey.command(short_help="Revoke a key.")
@click.argument("prefix", type=NAME)
@json_option
def revoke(*, prefix: str, is_json: bool) -> None:
    """Revoke a key: from now on it opens nothing. PREFIX is the part between `rk_` and the secret.

    \b
    Example:
      reversi apikey revoke k3v9x2m1qa
    """
    now = session.open_store()
    from approvals.operations.keys import revoke_key

    record = revoke_key(prefix=prefix.removeprefix("rk_"), actor=local_principal(), now=now)
    if is_json:
        emit_json(record.to_json())
    else:
        emit_lines(_lines(record))


def _lines(record: ApiKeyRecord) -> Iterator[str]:
    roles = "all of its owner's roles" if record.roles is None else ", ".join(record.roles)
    yield f"{record.prefix}  {record.owner}  {roles}  {_state(record)}{f'  {record.label}' if record.label else ''}"
    fixed = "".join(f"  {field} {value}" for field, value in record.limits.fixed.items())
    yield f"  scope {', '.join(record.limits.scope)}  {', '.join(record.limits.modes)}{fixed}"


def _state(record: ApiKeyRecord) -> str:
    if record.revoked_at is not None:
        return f"revoked {shown_time(record.revoked_at)} by {record.revoked_by}"
    until = "never expires" if record.expires_at is None else f"until {shown_time(record.expires_at)}"
    used = "never used" if record.last_used_at is None else f"last used {shown_time(record.last_used_at)}"
    return f"{until}, {used}"
