"""The command line `reversi`: the one place where errors become messages and exit codes."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

import click

from reversi_site.cli.group import reversi
from reversi_site.cli.output import OutputClosed

# Wrong options and arguments, and nothing else, exit 64; the other codes are in reversi_site.errors.
click.UsageError.exit_code = 64

# What a shell reports for a program that writes into a closed pipe.
PIPE_CLOSED = 141
INTERRUPTED = 130


def main(args: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; nothing escapes as a traceback."""
    try:
        code = _run(list(sys.argv[1:] if args is None else args))
        sys.stdout.flush()
        return code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (OutputClosed, BrokenPipeError):
        # Whoever read the output has left; a later flush must not complain about it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except (click.Abort, KeyboardInterrupt):
        click.echo("reversi: interrupted", err=True)
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001  # the edge: whatever it is becomes one line and an exit code
        return _explain(error)


def _run(args: list[str]) -> int:
    for stream in (sys.stdout, sys.stderr):
        # Texts of agents and file names may hold what the terminal's encoding lacks.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a text stream in every real process
    for position, arg in enumerate(args, start=1):
        if not arg.isascii():
            _require_utf8(position, arg)
    code = reversi.main(args=args, prog_name="reversi", standalone_mode=False)
    return int(code or 0)


def _require_utf8(position: int, arg: str) -> None:
    try:
        arg.encode("utf-8")
    except UnicodeEncodeError:
        raise click.UsageError(f"argument {position} is not valid UTF-8: {arg!a}") from None


def _explain(error: Exception) -> int:
    from reversi_site.errors import describe, exit_code

    if os.environ.get("REVERSI_DEBUG"):
        traceback.print_exception(error)
    click.echo(f"reversi: {describe(error)}", err=True)
    return int(exit_code(error))
