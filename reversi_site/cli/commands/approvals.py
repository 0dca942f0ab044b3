"""`reversi approvals`: calls that wait for people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from reversi_site.cli import session
from reversi_site.cli.output import emit_json, emit_lines, shown_time
from reversi_site.cli.parameters import NAME, RUN, Text, json_option
from reversi_site.identity import local_principal

if TYPE_CHECKING:
    from approvals.core.requests import ApprovalRecord

MOST = 100
REASON = Text(2000)


@click.group(short_help="Calls that wait for people.")
def approvals() -> None:
    """Look at the calls that wait for people to agree, and vote on them.

    \b
    Examples:
      reversi approvals list
      reversi approvals show apr_01KJ6R5V1T8M3Z0C7N2QXWYABD
      reversi approvals approve apr_01KJ6R5V1T8M3Z0C7N2QXWYABD --by dana --reason "checked with the customer"
      reversi approvals deny apr_01KJ6R5V1T8M3Z0C7N2QXWYABD --by dana --reason "wrong account"
    """


@approvals.command("list", short_help="List the requests that wait.")
@click.option("--all", "is_all", is_flag=True, help="Ended ones too.")
@click.option("--run", type=RUN, help="Only this run's.")
@json_option
def list_(*, is_all: bool, run: str | None, is_json: bool) -> None:
    """List the requests that wait or are approved and unused, newest first.

    \b
    Example:
      reversi approvals list --run run_1 --all
    """
    now = session.open_store()
    from approvals import queries
    from approvals.core.requests import LIVE

    found = queries.list_approvals(now=now, states=None if is_all else LIVE, run_id=run, limit=MOST)
    if is_json:
        emit_json({"approvals": [record.to_json() for record in found]})
    else:
        emit_lines([_line(record) for record in found] or ["no approvals"])


@approvals.command(short_help="Show a request whole.")
@click.argument("id_", metavar="ID", type=NAME)
@json_option
def show(*, id_: str, is_json: bool) -> None:
    """Show a request: what would be done, with every argument, who asks and why, and the votes.

    \b
    Example:
      reversi approvals show apr_01KJ6R5V1T8M3Z0C7N2QXWYABD
    """
    now = session.open_store()
    from approvals.queries import get_approval

    _tell(get_approval(id_, now=now), is_json)


@approvals.command(short_help="Agree to a call.")
@click.argument("id_", metavar="ID", type=NAME)
@click.option("--by", type=NAME, metavar="NAME", help="The user who votes; default is the user of this machine.")
@click.option("--reason", type=REASON, default=None, metavar="TEXT", help="Why; kept for good.")
@json_option
def approve(*, id_: str, by: str | None, reason: str | None, is_json: bool) -> None:
    """Agree to a call.

    `--by` names a user who may vote; that it is them who typed this is a claim, and recorded with the user of this
    machine. Votes that must be proven are cast in the console or with a key.

    \b
    Example:
      reversi approvals approve apr_01KJ6R5V1T8M3Z0C7N2QXWYABD --by dana --reason "checked with the customer"
    """
    _tell(_vote(id_, "approve", by, reason), is_json)


@approvals.command(short_help="Refuse a call.")
@click.argument("id_", metavar="ID", type=NAME)
@click.option("--by", type=NAME, metavar="NAME", help="The user who votes; default is the user of this machine.")
@click.option("--reason", type=REASON, default=None, metavar="TEXT", help="Why; the agent is told.")
@json_option
def deny(*, id_: str, by: str | None, reason: str | None, is_json: bool) -> None:
    """Refuse a call: one denial is enough, and the run cannot make that call any more.

    \b
    Example:
      reversi approvals deny apr_01KJ6R5V1T8M3Z0C7N2QXWYABD --by dana --reason "wrong account"
    """
    _tell(_vote(id_, "deny", by, reason), is_json)


def _vote(id_: str, decision: str, by: str | None, reason: str | None) -> ApprovalRecord:
    now = session.open_store()
    from approvals.core.errors import NotEligible
    from approvals.core.people import local_admin
    from approvals.operations.approvals import cast_vote
    from approvals.queries import get_caller

    here = local_principal()
    voter = local_admin(here) if by is None else get_caller(by)
    via = f"command line of {here}"
    try:
        return cast_vote(approval_id=id_, voter=voter, decision=decision, now=now, reason=reason or "", via=via)
    except NotEligible as error:
        if by is not None:
            raise
        raise NotEligible(id_, error.voter, f"{error.why}; whoever else votes is named with --by") from error


def _tell(record: ApprovalRecord, is_json: bool) -> None:
    if is_json:
        emit_json(record.to_json())
    else:
        emit_lines(_lines(record))


def _line(record: ApprovalRecord) -> str:
    votes = f"{sum(vote.decision == 'approve' for vote in record.votes)} of {record.quorum}"
    return f"{record.id}  {record.state.value}  {votes}  {record.run_id}  {record.requested_by}  {record.summary}"


def _lines(record: ApprovalRecord) -> Iterator[str]:
    yield f"{record.id} is {record.state.value}"
    yield f"  call      {record.summary}"
    yield f"  tool      {record.tool}  ({record.effect_label})"
    yield f"  run       {record.run_id}  of {record.run_principal}, asked for by {record.requested_by}"
    if record.reason:
        yield f"  reason    {record.reason}"
    voters = " or ".join(record.voter_roles)
    yield f"  voters    {voters}, {record.quorum} needed, until {shown_time(record.deadline_at)}"
    if record.use_until is not None and record.used_at is None:
        yield f"  usable    until {shown_time(record.use_until)}"
    if record.used_at is not None:
        yield f"  used      by step {record.used_by_step} at {shown_time(record.used_at)}"
    for vote in record.votes:
        why = f": {vote.reason}" if vote.reason else ""
        yield f"  vote      {vote.decision.value} by {vote.voter} ({vote.role}) at {shown_time(vote.at)}{why}"
    yield "  arguments"
    shown = "(gone: the request has ended)" if record.arguments is None else _json(record)
    yield from (f"    {line}" for line in shown.split("\n"))


def _json(record: ApprovalRecord) -> str:
    return json.dumps(record.arguments, ensure_ascii=False, indent=2)
