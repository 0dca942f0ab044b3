"""The console script `reversi-server`: the web server for production, on as many machines as share the database."""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence

import click

from reversi_site import cli
from reversi_site.cli.addresses import host_option, port_option
from reversi_site.cli.output import note_lines


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@host_option
@port_option
@click.option("--workers", type=click.IntRange(1, 64), default=2, show_default=True, help="Processes that serve.")
@click.option("--listening", type=int, hidden=True, help="A socket that already listens, as a file descriptor.")
def server(*, host: str, port: int, workers: int, listening: int | None) -> None:
    """Serve the console and the HTTP API until interrupted; `reversi worker` runs beside it.

    The store must be migrated (`reversi migrate`). Names under which it is reached beyond this machine stand in
    REVERSI_ALLOWED_HOSTS. Put a proxy with TLS in front of it.

    \b
    Examples:
      reversi-server --host 0.0.0.0 --port 8000 --workers 4
      DATABASE_URL=postgres://reversi@db/reversi REVERSI_ALLOWED_HOSTS=reversi.example.org reversi-server
    """
    from reversi_site.serving import address_of, listen, reach_of, serve

    opened = listen(host, port) if listening is None else socket.socket(fileno=listening)
    from reversi_site.store import open_store

    open_store()
    if listening is None:
        note_lines([f"listening on {address_of(opened)}", *([reach] if (reach := reach_of(opened)) else [])])
    serve(opened, workers=workers)


def main(args: Sequence[str] | None = None) -> int:
    """Run the server and return its exit code."""
    return cli.run(server, "reversi-server", args)


if __name__ == "__main__":
    sys.exit(main())
