"""The server of an embedded client, a process of its own: `reversi_sdk.client.embedded` starts it and nobody else.

Its socket and the pipe that it reports to are inherited. It serves whoever holds the key that it made, and stops when
its standard input ends: so it never outlives the process that started it. The key is revoked at the end.
"""

from __future__ import annotations

import json
import os
import re
import select
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import click

from reversi_site import cli
from reversi_site.cli.output import note
from reversi_site.errors import describe

LABEL = "embedded client"
ROLES = ("agent", "operator", "admin")
MODES = ("enforce", "observe")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.@+-]")
Tell = Callable[[dict[str, str]], None]


@click.command()
@click.option("--listening", type=int, required=True)
@click.option("--report", type=int, required=True)
def private_server(*, listening: int, report: int) -> None:
    """Serve one client on an inherited socket until standard input ends."""
    # What is started below must not hold the pipe open: its end tells that this process has died.
    os.set_inheritable(report, False)

    def tell(said: dict[str, str]) -> None:
        try:
            os.write(report, json.dumps(said).encode("ascii") + b"\n")
        except BrokenPipeError:
            note("the client has gone before its server was ready")

    with socket.socket(fileno=listening) as opened:
        try:
            _serve(opened, tell)
        except Exception as error:
            tell({"error": describe(error)})
            raise


def main(args: Sequence[str] | None = None) -> int:
    """Run the server and return its exit code."""
    return cli.run(private_server, "reversi (private server)", args)


def _serve(listening: socket.socket, tell: Tell) -> None:
    from reversi_site.first_use import prepare
    from reversi_site.supervision import stopping_on_signals, supervise, web_part, worker_part

    stop = stopping_on_signals()
    prepare(makes_admin=False)
    with _key() as token:
        supervise(
            [web_part(listening, workers=1), worker_part()],
            port=listening.getsockname()[1],
            on_ready=lambda: tell({"api_key": token}),
            wait=lambda seconds: stop.is_set() or _has_input_ended(seconds),
            note=note,
        )


@contextmanager
def _key() -> Iterator[str]:
    """Make a key and revoke it afterwards; its owner may all that whoever has the folder may do anyway."""
    from django.db import connections

    from approvals.operations.keys import create_key, revoke_key
    from approvals.operations.people import ensure_user
    from reversi_site.identity import local_principal
    from reversi_site.kit.clock import SystemClock

    # The local user's own name is the command line's alone, and no user's.
    owner, clock = f"embedded.{_NOT_IN_NAMES.sub('_', local_principal().partition(':')[2])}", SystemClock()
    ensure_user(username=owner, roles=ROLES, actor=owner, now=clock.now())
    record, token = create_key(owner=owner, actor=owner, label=LABEL, modes=MODES, now=clock.now())
    connections.close_all()
    try:
        yield token
    finally:
        revoke_key(prefix=record.prefix, actor=owner, now=clock.now())
        connections.close_all()


def _has_input_ended(seconds: float) -> bool:
    """Wait for the seconds, or until standard input ends."""
    ready, _, _ = select.select([sys.stdin.fileno()], [], [], seconds)
    return bool(ready) and not os.read(sys.stdin.fileno(), 4096)


if __name__ == "__main__":
    sys.exit(main())
