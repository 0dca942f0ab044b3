"""The command `reversi` itself: its options, and its subcommands, each imported only when it is used or listed.

No module of a command imports Django at its top: `reversi --help` and the commands that need no store stay fast.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from pathlib import Path

import click

from reversi_site.cli.parameters import FILE, FOLDER

COMMANDS: Mapping[str, str] = {
    "up": "up:up",
    "demo": "demo:demo",
    "doctor": "doctor:doctor",
    "worker": "worker:worker",
    "migrate": "migrate:migrate",
    "validate": "validate:validate",
    "runs": "runs:runs",
    "plan": "plan:plan",
    "rollback": "rollback:rollback",
    "verify": "verify:verify",
    "resolve": "resolve:resolve",
    "approvals": "approvals:approvals",
    "halt": "halt:halt",
    "kill-switch": "kill_switch:kill_switch",
    "roles": "roles:roles",
    "apikey": "apikey:apikey",
    "ledger": "ledger:ledger",
}


class LazyGroup(click.Group):
    """A group whose commands are named in a table of modules."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the table's order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command; None for a name that is not in the table."""
        place = COMMANDS.get(cmd_name)
        if place is None:
            return None
        module, _, name = place.partition(":")
        command: click.Command = getattr(importlib.import_module(f"reversi_site.cli.commands.{module}"), name)
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "--data",
    type=FOLDER,
    metavar="DIR",
    help="Folder of the embedded store and the keys; default REVERSI_DATA, else ./reversi-data.",
)
@click.option(
    "--config", type=FILE, metavar="F", help="The configuration; default REVERSI_CONFIG, else ./reversi.config.yaml."
)
@click.version_option(package_name="reversi", message="%(prog)s %(version)s")
def reversi(data: str | None, config: Path | None) -> None:
    """Undo what AI agents did: journal their tool calls, plan the way back, roll back and prove it.

    \b
    Examples:
      reversi up                          console, API and worker on this machine
      reversi demo                        see it at work, in a folder of its own
      reversi runs list --attention       which runs need a person
      reversi plan --last                 what a rollback of the last run would do
      reversi rollback run_1 --reader-cmd ./read.sh
      reversi --data /srv/reversi doctor  is all in order, and if not, what to do
      reversi --config /srv/gateway.yaml --data /srv/reversi rollback --last

    \b
    Exit codes:
      0   fine
      1   a check found errors; invalid, not found, not allowed, or a conflict
      2   not fully reversible, or a rollback that is incomplete
      64  wrong options or arguments
      69  the store or an upstream is unavailable
      70  internal error (REVERSI_DEBUG=1 shows where)
      130 interrupted
      141 whoever read the output left before its end
    """
    for name, value in (("REVERSI_DATA", data), ("REVERSI_CONFIG", config)):
        if value is not None:
            os.environ[name] = str(value)
