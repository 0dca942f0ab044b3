"""The command lines: the one place where errors become messages and exit codes."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

import click

from reversi_site.cli.group import reversi
from reversi_site.cli.output import OutputClosed
from reversi_site.errors import ExitCode, describe, exit_code

# Wrong options and arguments, and nothing else.
click.UsageError.exit_code = ExitCode.USAGE


def main(args: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; nothing escapes as a traceback."""
    return run(reversi, "reversi", args)


def run(command: click.Command, name: str, args: Sequence[str] | None) -> int:
    """Run a command line by its name; `args` default to what the process was given."""
    try:
        if args is None:
            # Unwinds the stack, so that runs are given back and child processes stopped.
            signal.signal(signal.SIGTERM, _interrupt)
        code = _run(command, name, list(sys.argv[1:] if args is None else args))
        sys.stdout.flush()
        return code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (OutputClosed, BrokenPipeError):
        # Whoever read the output has left; a later flush must not complain about it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OUTPUT_CLOSED
    except (click.Abort, KeyboardInterrupt):
        click.echo(f"{name}: interrupted", err=True)
        return ExitCode.INTERRUPTED
    except Exception as error:  # noqa: BLE001  # the edge: whatever it is becomes one line and an exit code
        return _explain(name, error)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _run(command: click.Command, name: str, args: list[str]) -> int:
    for stream in (sys.stdout, sys.stderr):
        # Texts of agents and file names may hold what the terminal's encoding lacks.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a text stream in every real process
    for position, arg in enumerate(args, start=1):
        if not arg.isascii():
            _require_utf8(position, arg)
    code = command.main(args=args, prog_name=name, standalone_mode=False)
    return int(code or 0)


def _require_utf8(position: int, arg: str) -> None:
    try:
        arg.encode("utf-8")
    except UnicodeEncodeError:
        raise click.UsageError(f"argument {position} is not valid UTF-8: {arg!a}") from None


def _explain(name: str, error: Exception) -> int:
    if os.environ.get("REVERSI_DEBUG"):
        traceback.print_exception(error)
    click.echo(f"{name}: {describe(error)}", err=True)
    return exit_code(error)
