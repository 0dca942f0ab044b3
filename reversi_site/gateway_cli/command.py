"""`reversi-gateway` itself: its options and what they may not be together; nothing heavy is loaded for that."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from reversi_site.cli.parameters import FILE, FOLDER, RUN
from reversi_site.gateway_cli.upstream_flags import upstream_options

SUBCOMMANDS: Mapping[str, str] = {"init": "reversi_site.gateway_cli.init:init"}
PATH = click.Path(path_type=Path, exists=True)


class Address(click.ParamType[tuple[str, int]]):
    """A host and a port."""

    name = "address"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        """Return the two."""
        host, _, port = str(value).rpartition(":")
        if not host or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
            self.fail(f"{value!r} must be HOST:PORT, like 127.0.0.1:8001", param, ctx)
        return host.removeprefix("[").removesuffix("]"), int(port)


class Group(click.Group):
    """The gateway's subcommands, each imported when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the table's order."""
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the subcommand; None for a name that is not in the table."""
        place = SUBCOMMANDS.get(cmd_name)
        if place is None:
            return None
        module, _, name = place.partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command


@click.group(
    cls=Group,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.option(
    "--manifests", type=PATH, multiple=True, metavar="PATH", help="What says how to undo the tools; repeatable."
)
@click.option("--data", type=FOLDER, metavar="DIR", help="Folder of the embedded store; default REVERSI_DATA.")
@upstream_options
@click.option("--config", type=FILE, metavar="F", help="The configuration; default REVERSI_CONFIG, else the one here.")
@click.option("--connector", metavar="NAME", help="A connector of ours that serves undos and reads: fs.")
@click.option("--root", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="The connector's folder.")
@click.option("--backup-dir", type=click.Path(path_type=Path), metavar="DIR", help="Where the connector keeps copies.")
@click.option(
    "--http", type=Address(), metavar="HOST:PORT", help="Serve over HTTP instead of standard input and output."
)
@click.option("--run-id", type=RUN, metavar="ID", help="The run of every call; without it each client has its own.")
@click.option("--mode", type=click.Choice(["enforce", "observe"]), help="Refuse what may not be, or only note it.")
@click.option("--scope", multiple=True, metavar="P", help="A permission that runs get; repeatable; all without it.")
@click.option("--operator", "is_operator", is_flag=True, help="Offer rollback, halt and resume too.")
@click.version_option(package_name="reversi", message="%(prog)s %(version)s")
@click.pass_context
def gateway(context: click.Context, /, *, data: str | None, config: Path | None, **asked: Any) -> int:
    """Stand before an MCP server as one: journal every call of its tools, and undo them later.

    It serves one client over standard input and output, as the user who started it; with --http it serves many, who
    show API keys: agents at /mcp, operators at /mcp/operator. Relative paths are seen from the working folder.

    \b
    Examples:
      reversi-gateway --manifests tools.yaml --data ./reversi-data --upstream-cmd npx --upstream-arg -y \\
          --upstream-arg @modelcontextprotocol/server-memory
      reversi-gateway --config reversi.config.yaml --operator
      reversi-gateway --config reversi.config.yaml --http 127.0.0.1:8001
      reversi-gateway --connector fs --root ./work --manifests fs.yaml
      reversi-gateway init --upstream-cmd npx --upstream-arg -y --upstream-arg @modelcontextprotocol/server-memory

    \b
    Exit codes:
      0   the client has left, or a signal ended it
      1   the manifests or the configuration are invalid
      64  wrong options or arguments
      69  the store is unavailable, or the port is taken
    """
    if context.invoked_subcommand is not None:
        return 0
    from reversi_site.gateway_cli.options import read_options

    options = read_options(**asked)
    for name, value in (("REVERSI_DATA", data), ("REVERSI_CONFIG", config)):
        if value is not None:
            os.environ[name] = str(value)
    from reversi_site.gateway_cli.serving import serve

    return serve(options)
