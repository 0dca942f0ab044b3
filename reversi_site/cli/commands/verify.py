"""`reversi verify`: run the read-backs that are still open."""

from __future__ import annotations

import click

from reversi_site.cli import session
from reversi_site.cli.parameters import RUN, json_option
from reversi_site.cli.rollbacks import chosen_tools, progress_shower, reader_option, show_report
from reversi_site.identity import local_principal


@click.command(short_help="Read back what was undone and not checked yet.")
@click.argument("run", type=RUN)
@reader_option
@json_option
def verify(*, run: str, reader_cmd: str | None, is_json: bool) -> int:
    """Read back the undone steps whose declared read-back never ran, and report how every step then stands.

    \b
    Example:
      reversi verify run_01J --reader-cmd ./read.sh
    """
    session.open_store()
    from rollback.operations.execution import verify_run

    tools = chosen_tools(reader_cmd=reader_cmd)
    report = verify_run(run_id=run, tools=tools, actor=local_principal(), on_progress=progress_shower())
    return show_report(report, is_json=is_json)
