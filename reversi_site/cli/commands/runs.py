"""`reversi runs`: list, show, open and close runs."""

from __future__ import annotations

from datetime import timedelta

import click

from reversi_site.cli import session
from reversi_site.cli.documents import run_document, step_document
from reversi_site.cli.output import emit_json, emit_lines
from reversi_site.cli.parameters import DURATION, NAME, NOTE, RUN, json_option, require_one_run, run_or_last
from reversi_site.cli.timeline import run_lines, timeline_lines
from reversi_site.identity import local_principal


@click.group()
def runs() -> None:
    """List, show, open and close runs.

    \b
    Examples:
      reversi runs list --since 1h --attention
      reversi runs show --last
    """


@runs.command("list")
@click.option("--since", type=DURATION, metavar="DURATION", help="Opened within this time, like 1h or 2d.")
@click.option("--actor", type=NAME, metavar="GLOB", help="Whose actor matches, like 'billing-*'.")
@click.option("--attention", "needs_attention", is_flag=True, help="With a step that nobody settled or undid.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=100, show_default=True, help="At most so many.")
@json_option
def list_(*, since: int | None, actor: str | None, needs_attention: bool, limit: int, is_json: bool) -> None:
    """List runs, newest first.

    \b
    Examples:
      reversi runs list --since 1h
      reversi runs list --actor 'billing-*' --attention --json
    """
    now = session.open_store()
    from ledger import queries

    start = None if since is None else now - timedelta(milliseconds=since)
    found = queries.list_runs(since=start, actor=actor, needs_attention=needs_attention, limit=limit)
    if is_json:
        emit_json({"runs": [run_document(run) for run in found]})
    else:
        emit_lines(run_lines(found) or ["no runs"])


@runs.command()
@run_or_last
@json_option
def show(*, run: str | None, is_last: bool, is_json: bool) -> None:
    """Show a run as a timeline of its steps.

    \b
    Examples:
      reversi runs show run_01J
      reversi runs show --last --json
    """
    require_one_run(run, is_last)
    session.open_store()
    from ledger import queries

    record = queries.get_run(session.chosen_run(run, is_last))
    steps, events = queries.list_steps(record.id), queries.list_events(record.id)
    if is_json:
        blocked = [{"at": event.at, **(event.data or {})} for event in events if event.kind == "blocked"]
        emit_json(run_document(record) | {"steps": [step_document(step) for step in steps], "blocked": blocked})
    else:
        emit_lines(timeline_lines(record, steps, events))


@runs.command("open")
@click.option("--id", "id_", type=RUN, help="The run's id; made up when not given. An existing run is continued.")
@click.option("--actor", type=NAME, help="On whose behalf, like billing-agent.")
@click.option("--tenant", type=NAME, help="A label: halts can be narrowed to it.")
@click.option("--environment", type=NAME, help="A label like prod: halts can be narrowed to it.")
@click.option(
    "--mode",
    type=click.Choice(["enforce", "observe"]),
    default="enforce",
    show_default=True,
    help="Whether violations block a call or are only recorded.",
)
@click.option("--scope", type=NAME, multiple=True, metavar="PERMISSION", help="A permission, * allowed; repeatable.")
@click.option("--reason", type=NOTE, help="What the run is for.")
@json_option
def open_(
    *,
    id_: str | None,
    actor: str | None,
    tenant: str | None,
    environment: str | None,
    mode: str,
    scope: tuple[str, ...],
    reason: str | None,
    is_json: bool,
) -> None:
    """Open a run, or continue the one of that id; prints its id.

    \b
    Example:
      reversi runs open --actor billing-agent --scope 'payments:*' --reason 'invoice 12'
    """
    now = session.open_store()
    from ledger.operations.runs import open_run

    record, is_new = open_run(
        principal=local_principal(),
        now=now,
        run_id=id_,
        actor=actor or "",
        tenant=tenant or "",
        environment=environment or "",
        mode=mode,
        scope=scope,
        reason=reason or "",
    )
    if is_json:
        emit_json(run_document(record) | {"created": is_new})
    else:
        emit_lines([record.id])


@runs.command(short_help="Close a run: it takes no more calls.")
@run_or_last
@json_option
def close(*, run: str | None, is_last: bool, is_json: bool) -> None:
    """Close a run: it takes no more calls, and can still be planned and rolled back.

    \b
    Examples:
      reversi runs close run_01J
      reversi runs close --last
    """
    require_one_run(run, is_last)
    now = session.open_store()
    from ledger.operations.runs import close_run

    record = close_run(run_id=session.chosen_run(run, is_last), actor=local_principal(), now=now)
    if is_json:
        emit_json(run_document(record))
    else:
        emit_lines([f"{record.id} is closed"])
