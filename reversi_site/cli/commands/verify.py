"""`reversi verify`: run the read-backs that are still open."""

from __future__ import annotations

import click

from reversi_site.cli import session
from reversi_site.cli.parameters import json_option, require_one_run, run_or_last
from reversi_site.cli.rollbacks import chosen_tools, progress_shower, reader_option, show_report
from reversi_site.identity import local_principal


@click.command(short_help="Read back what was undone and not checked yet.")
@run_or_last
@reader_option
@json_option
def verify(*, run: str | None, is_last: bool, reader_cmd: str | None, is_json: bool) -> int:
    """Read back the undone steps whose declared read-back never ran, and report how every step then stands.

    \b
    Examples:
      reversi verify run_01J --reader-cmd ./read.sh
      reversi verify --last
    """
    require_one_run(run, is_last)
    session.open_store()
    from rollback.operations.execution import verify_run

    tools = chosen_tools(reader_cmd=reader_cmd)
    report = verify_run(
        run_id=session.chosen_run(run, is_last), tools=tools, actor=local_principal(), on_progress=progress_shower()
    )
    return show_report(report, is_json=is_json)
