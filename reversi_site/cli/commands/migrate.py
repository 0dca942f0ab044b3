"""`reversi migrate`: bring the store's tables up to this version."""

from __future__ import annotations

import click

from reversi_site.cli.output import counted, emit_json, emit_lines
from reversi_site.cli.parameters import json_option


@click.command(short_help="Create or update the store's tables.")
@json_option
def migrate(*, is_json: bool) -> None:
    """Create or update the store's tables.

    The embedded store does this by itself on first use. A PostgreSQL database is only changed by this command: run
    it once per version, with a role that may create tables; several at once wait for each other.

    \b
    Example:
      DATABASE_URL=postgres://owner@db/reversi reversi migrate
    """
    from reversi_site.store import migrate_store

    applied = migrate_store()
    if is_json:
        emit_json({"applied": list(applied)})
    else:
        emit_lines(
            [*applied, f"{counted(len(applied), 'migration')} applied"] if applied else ["the store is up to date"]
        )
