"""`reversi resolve`: settle a step by a person's word."""

from __future__ import annotations

import click

from reversi_site.cli import session
from reversi_site.cli.documents import step_document
from reversi_site.cli.output import emit_json, emit_lines
from reversi_site.cli.parameters import JSON, NAME, NOTE, RUN, Boxed, json_option
from reversi_site.cli.rollbacks import chosen_tools, reader_option
from reversi_site.cli.timeline import resolved_lines
from reversi_site.identity import local_principal


@click.command(short_help="Settle a step by a person's word.")
@click.argument("run", type=RUN)
@click.argument("step", type=click.IntRange(min=0, max=2**31 - 1))
@click.option(
    "--status",
    type=click.Choice(["succeeded", "failed", "compensated"]),
    required=True,
    help="What was found: the call took effect, it did not, or it was undone by hand.",
)
@click.option("--result", type=JSON, metavar="JSON", help="What the call returned, so that it can be undone.")
@click.option("--note", type=NOTE, required=True, metavar="TEXT", help="What was found, and where; kept for good.")
@click.option("--actor", type=NAME, metavar="NAME", help="Who says so; default is the user of this machine.")
@reader_option
@json_option
def resolve(
    *,
    run: str,
    step: int,
    status: str,
    result: Boxed | None,
    note: str,
    actor: str | None,
    reader_cmd: str | None,
    is_json: bool,
) -> None:
    """Settle a step that nobody else can: after looking at the downstream system.

    `compensated` runs the declared read-back, where something can run it, and refuses what it contradicts.

    \b
    Examples:
      reversi resolve run_01J 0 --status succeeded --result '{"id":"ch_o50"}' --note "found in the dashboard"
      reversi resolve run_01J 3 --status compensated --note "closed the ticket by hand" --actor dana
    """
    if result is not None and status != "succeeded":
        raise click.UsageError("--result belongs to --status succeeded")
    session.open_store()
    from reversi_sdk.references import MISSING
    from rollback.operations import resolution

    record = resolution.resolve(
        run_id=run,
        number=step,
        status=status,
        note=note,
        actor=actor or local_principal(),
        tools=chosen_tools(reader_cmd=reader_cmd),
        result=MISSING if result is None else result.value,
    )
    if is_json:
        emit_json(step_document(record))
    else:
        emit_lines(resolved_lines(record))
