"""`reversi plan`: what a rollback would do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reversi_site.cli import session
from reversi_site.cli.output import emit_json, emit_lines, note
from reversi_site.cli.parameters import (
    json_option,
    require_one_run,
    require_one_selection,
    run_or_last,
    selection_options,
)
from reversi_site.cli.rollbacks import chosen_steps, described_tools, manifests_option

if TYPE_CHECKING:
    from rollback.core.plan import CanRun


@click.command(short_help="Show what a rollback would do.")
@run_or_last
@selection_options
@manifests_option
@json_option
def plan(
    *,
    run: str | None,
    is_last: bool,
    steps: tuple[int, ...] | None,
    to_step: int | None,
    manifests: Path | None,
    is_json: bool,
) -> int:
    """Show what a rollback would do, newest step first; changes nothing.

    Exit 2 when the run, or the selection, is not fully reversible. The JSON carries a digest: `reversi rollback
    --digest` then executes this plan or nothing.

    \b
    Examples:
      reversi plan run_01J
      reversi plan --last --to-step 4
      reversi plan run_01J --steps 3,5 --json
    """
    require_one_run(run, is_last)
    require_one_selection(steps, to_step)
    described = described_tools(manifests)
    now = session.open_store()
    from rollback.core.text import plan_lines
    from rollback.queries import get_plan

    run_id = session.chosen_run(run, is_last)
    selection = chosen_steps(steps, to_step)
    found = get_plan(run_id=run_id, now=now, selection=selection, can_run=_can_run(), described=described)
    if is_json:
        emit_json(found.to_json())
    else:
        emit_lines(plan_lines(found))
    return 0 if found.fully_reversible else 2


def _can_run() -> CanRun | None:
    """Return what runs undos here; None, with a word about it, where nothing is configured that could."""
    from reversi_site.wiring import configured_tools

    tools = configured_tools()
    if tools.is_reaching:
        return tools.can_run
    note("nothing is configured that runs undos: a rollback from here needs --compensator-cmd")
    return None
