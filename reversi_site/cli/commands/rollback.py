"""`reversi rollback`: undo a run, here and now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from reversi_site.cli import session
from reversi_site.cli.parameters import COMMAND, json_option, require_one_run, require_one_selection, run_or_last
from reversi_site.cli.rollbacks import (
    chosen_options,
    chosen_tools,
    decision_options,
    described_tools,
    manifests_option,
    progress_shower,
    reader_option,
    show_report,
)
from reversi_site.identity import local_principal


@click.command(short_help="Undo a run, here and now.")
@run_or_last
@manifests_option
@click.option(
    "--compensator-cmd",
    type=COMMAND,
    metavar="CMD",
    help="Runs undos: gets each call as JSON on stdin; exit 0 is undone.",
)
@reader_option
@click.option("--verify-cmd", type=COMMAND, metavar="CMD", help="Runs after each undo; anything but exit 0 fails it.")
@decision_options
@json_option
def rollback(
    *,
    run: str | None,
    is_last: bool,
    manifests: Path | None,
    compensator_cmd: str | None,
    reader_cmd: str | None,
    verify_cmd: str | None,
    is_json: bool,
    **decided: Any,
) -> int:
    """Undo a run's standing steps, newest first, and report how every step then stands.

    Runs in the foreground; commands are split like a shell does, and run without one. Running it again is safe:
    undone steps are skipped, failed ones tried again with the same key. Exit 2 when anything is left.

    \b
    Examples:
      reversi rollback run_01J
      reversi rollback --last --compensator-cmd ./undo.sh --reader-cmd ./read.sh --retries 4
      reversi rollback run_01J --steps 3,5 --approve-compensations --json
    """
    require_one_run(run, is_last)
    require_one_selection(decided["steps"], decided["to_step"])
    described = described_tools(manifests)
    session.open_store()
    from rollback.operations.execution import run_foreground

    report = run_foreground(
        run_id=session.chosen_run(run, is_last),
        tools=chosen_tools(compensator_cmd, reader_cmd, verify_cmd),
        actor=local_principal(),
        options=chosen_options(**decided),
        on_progress=progress_shower(),
        described=described,
    )
    return show_report(report, is_json=is_json)
