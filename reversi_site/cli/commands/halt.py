"""`reversi halt`: stop new calls, all or by scope."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from approvals.core.documents import halt_document
from reversi_site.cli import session
from reversi_site.cli.output import counted, emit_json, emit_lines
from reversi_site.cli.parameters import HALT_REASON, NAME, json_option
from reversi_site.identity import local_principal

if TYPE_CHECKING:
    from approvals.core.halts import HaltRecord


@click.group(short_help="Stop new calls, all or by scope.")
def halt() -> None:
    """Stop new calls: all of them, or those that a scope names. Rollbacks go on.

    \b
    Examples:
      reversi halt add "investigating duplicate charges" --tool 'stripe.*' --actor billing-agent --by dana
      reversi halt list
      reversi halt lift
    """


@halt.command(short_help="Block new calls, all or by scope.")
@click.argument("reason", type=HALT_REASON)
@click.option("--tool", type=NAME, metavar="GLOB", help="Calls of tools like 'stripe.*'.")
@click.option("--actor", type=NAME, metavar="GLOB", help="Calls of runs whose actor matches.")
@click.option("--tenant", type=NAME, metavar="GLOB", help="Calls of runs whose tenant matches.")
@click.option("--environment", type=NAME, metavar="GLOB", help="Calls of runs whose environment matches.")
@click.option("--principal", type=NAME, metavar="GLOB", help="Calls that this principal makes.")
@click.option("--run", type=NAME, metavar="GLOB", help="Calls of runs whose id matches.")
@click.option("--by", type=NAME, metavar="NAME", help="Who adds it; default is the user of this machine.")
@json_option
def add(*, reason: str, by: str | None, is_json: bool, **scope: str | None) -> None:
    """Block new calls that match every field given; no field blocks everything.

    A call that begins after this command returned is blocked, in every process on the same store.

    \b
    Examples:
      reversi halt add "something is wrong"
      reversi halt add "investigating duplicate charges" --tool 'stripe.*' --actor billing-agent --by dana
    """
    now = session.open_store()
    from approvals.core.halts import HaltScope
    from approvals.operations.halts import add_halt

    record, in_flight = add_halt(reason=reason, scope=HaltScope(**scope), actor=by or local_principal(), now=now)
    if is_json:
        emit_json(halt_document(record) | {"in_flight": in_flight})
    else:
        emit_lines([_line(record), f"{counted(in_flight, 'matching call')} in flight"])


@halt.command("list")
@click.option("--all", "is_all", is_flag=True, help="Lifted ones too.")
@json_option
def list_(*, is_all: bool, is_json: bool) -> None:
    """List the halts that stand.

    \b
    Example:
      reversi halt list --json
    """
    session.open_store()
    from approvals import queries

    found = queries.list_halts(active_only=not is_all)
    if is_json:
        emit_json({"halts": [halt_document(record) for record in found]})
    else:
        emit_lines([_line(record) for record in found] or ["no halts"])


@halt.command()
@click.argument("id_", metavar="[ID|all]", type=NAME, default="all")
@click.option("--by", type=NAME, metavar="NAME", help="Who lifts it; default is the user of this machine.")
@json_option
def lift(*, id_: str, by: str | None, is_json: bool) -> None:
    """Lift one halt, or all of them.

    \b
    Examples:
      reversi halt lift
      reversi halt lift halt_e0d44609-7c1f-4a52-9a55-0d0b9c6b8f10 --by dana
    """
    now = session.open_store()
    from approvals.operations.halts import lift_halt

    lifted = lift_halt(id=None if id_ == "all" else id_, actor=by or local_principal(), now=now)
    if is_json:
        emit_json({"lifted": lifted})
    else:
        emit_lines([f"lifted {lifted}"])


def _line(record: HaltRecord) -> str:
    scope = json.dumps(record.scope.to_json(), separators=(",", ":"), ensure_ascii=False)
    lifted = f"  lifted by {record.lifted_by}" if record.lifted_at else ""
    return f"{record.id}  {record.reason}  scope={scope}  by {record.added_by}{lifted}"
