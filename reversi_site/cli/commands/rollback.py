"""`reversi rollback`: undo a run, here and now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reversi_site.cli import session
from reversi_site.cli.output import emit_json, emit_lines
from reversi_site.cli.parameters import (
    COMMAND,
    DIGEST,
    json_option,
    require_one_run,
    require_one_selection,
    run_or_last,
    selection_options,
)
from reversi_site.cli.rollbacks import (
    chosen_steps,
    chosen_tools,
    described_tools,
    manifests_option,
    progress_shower,
    reader_option,
    report_exit,
)
from reversi_site.identity import local_principal

if TYPE_CHECKING:
    from rollback.core.options import RollbackOptions


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
@click.option("--retries", type=click.IntRange(1, 10), default=1, show_default=True, help="Attempts per undo.")
@click.option("--approve-compensations", is_flag=True, help="Approve the undos that need it, in one go.")
@selection_options
@click.option("--overwrite", is_flag=True, help="Undo also where newer work would be lost.")
@click.option("--close", is_flag=True, help="Close the run afterwards.")
@click.option("--digest", type=DIGEST, metavar="D", help="Execute the plan of this digest, or nothing.")
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
    from rollback.core.text import report_lines
    from rollback.operations.execution import run_foreground

    report = run_foreground(
        run_id=session.chosen_run(run, is_last),
        tools=chosen_tools(compensator_cmd, reader_cmd, verify_cmd),
        actor=local_principal(),
        options=_options(**decided),
        on_progress=progress_shower(),
        described=described,
    )
    if is_json:
        emit_json(report.to_json())
    else:
        emit_lines(report_lines(report))
    return report_exit(report)


def _options(
    *,
    retries: int,
    approve_compensations: bool,
    steps: tuple[int, ...] | None,
    to_step: int | None,
    overwrite: bool,
    close: bool,
    digest: str | None,
) -> RollbackOptions:
    from rollback.core.backoff import Retrying
    from rollback.core.options import RollbackOptions

    return RollbackOptions(
        retrying=Retrying(attempts=retries),
        selection=chosen_steps(steps, to_step),
        approves_compensations=approve_compensations,
        is_overwrite_allowed=overwrite,
        closes=close,
        digest=digest,
    )
