"""`reversi demo`: see the whole thing at work."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import click

from reversi_site.cli.output import emit_json, emit_lines, note_lines
from reversi_site.cli.parameters import json_option


@click.command(short_help="See an agent at work on real files, and all of it undone.")
@click.option(
    "--use-database",
    is_flag=True,
    help="Journal into the database of DATABASE_URL instead of a store of its own; the two runs stay there.",
)
@json_option
def demo(*, use_database: bool, is_json: bool) -> int:
    """Let an agent work on real files, undo all of it, and prove that the folder is what it was.

    Then the same where not everything can be undone, to see that the report says so. Takes place in a new folder
    under the data folder, uses none of your configuration, and leaves nothing running. Exit 0 only when every
    expectation held.

    \b
    Examples:
      reversi demo
      reversi demo --json 2>/dev/null
    """
    from reversi_site.demo.narrator import Narrator
    from reversi_site.demo.performance import perform
    from reversi_site.demo.stage import enter, set_stage

    stage = set_stage(Path(os.environ.get("REVERSI_DATA") or "reversi-data"), now=datetime.now(UTC))
    enter(stage, keeps_database=use_database)
    narrator = Narrator(note_lines if is_json else emit_lines)
    runs = perform(stage, narrator)
    if is_json:
        emit_json(
            {
                "ok": narrator.is_content,
                "folder": str(stage.folder),
                "runs": [runs.undone, runs.honest],
                "expectations": [
                    {"fact": each.fact, "met": each.is_met, "seen": each.seen} for each in narrator.expectations
                ],
            }
        )
    return 0 if narrator.is_content else 1
