"""`reversi up`: console, API and worker on this machine."""

from __future__ import annotations

import click

from reversi_site.cli.addresses import host_option, port_option
from reversi_site.cli.output import emit_lines, note


@click.command(short_help="Run console, API and worker on this machine.")
@host_option
@port_option
def up(*, host: str, port: int) -> None:
    """Run the console, the HTTP API and a worker until interrupted, creating or updating the store first.

    Prints the console's address once it can be used and, the first time, the password of the user `admin`. Ctrl-C
    or SIGTERM stops everything. For several machines there are `reversi-server` and `reversi worker`.

    \b
    Examples:
      reversi up
      reversi up --host 0.0.0.0 --port 9000
      DATABASE_URL=postgres://reversi@db/reversi reversi up
    """
    from reversi_site.serving import address_of, listen, reach_of

    with listen(host, port) as listening:
        from reversi_site.first_use import prepare
        from reversi_site.supervision import stopping_on_signals, supervise, web_part, worker_part

        stop = stopping_on_signals()
        password = prepare()
        if password is not None:
            emit_lines([f"first sign-in: user admin, password {password} (shown only now)"])
        address = address_of(listening)

        def announce() -> None:
            if (reach := reach_of(listening)) is not None:
                note(reach)
            emit_lines([f"console: {address}/", f"API: {address}/v1/docs", "press Ctrl-C to stop"])

        supervise(
            [web_part(listening, workers=2), worker_part()],
            port=listening.getsockname()[1],
            on_ready=announce,
            wait=stop.wait,
            note=note,
        )
    note("stopped")
