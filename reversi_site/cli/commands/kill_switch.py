"""`reversi kill-switch`: the file whose presence blocks every new call."""

from __future__ import annotations

import os
from pathlib import Path

import click

from reversi_site.cli.output import emit_json, emit_lines, note
from reversi_site.cli.parameters import NOTE, json_option
from reversi_site.identity import local_principal

PATH = click.Path(path_type=Path)


@click.group("kill-switch", short_help="Stop every new call with a file.")
def kill_switch() -> None:
    """Block every new call with a file, without the store; rollbacks go on.

    FILE defaults to REVERSI_KILL_FILE, else `kill_switch_file` of the configuration: the file that every process
    with this configuration watches. Its first line is the reason that blocked callers are told.

    \b
    Examples:
      reversi kill-switch on --reason 'agents misbehave'
      reversi kill-switch off
    """


@kill_switch.command()
@click.argument("file", type=PATH, required=False)
@click.option("--reason", type=NOTE, help="What blocked callers are told.")
@json_option
def on(*, file: Path | None, reason: str | None, is_json: bool) -> None:
    """Create FILE; one that exists is left as it is.

    \b
    Example:
      reversi kill-switch on /srv/reversi/KILL --reason 'investigating duplicate charges'
    """
    path = _chosen(file)
    text = reason or f"kill switch turned on by {local_principal()}"
    try:
        with path.open("x", encoding="utf-8") as handle:
            handle.write(text.replace("\n", " ") + "\n")
    except FileExistsError:
        note("it was already on, with its reason as it is")
    except OSError as error:
        raise _unusable(path, error) from error
    _say(path, is_on=True, is_json=is_json)


@kill_switch.command()
@click.argument("file", type=PATH, required=False)
@json_option
def off(*, file: Path | None, is_json: bool) -> None:
    """Remove FILE.

    \b
    Example:
      reversi kill-switch off /srv/reversi/KILL
    """
    path = _chosen(file)
    try:
        path.unlink()
    except FileNotFoundError:
        note("it was already off")
    except OSError as error:
        raise _unusable(path, error) from error
    _say(path, is_on=False, is_json=is_json)


def _say(path: Path, *, is_on: bool, is_json: bool) -> None:
    if is_json:
        emit_json({"file": str(path), "on": is_on})
    else:
        emit_lines([f"kill switch {'on' if is_on else 'off'}: {path}"])


def _chosen(file: Path | None) -> Path:
    from reversi_site.configuration import load_configuration

    watched = load_configuration(os.environ, Path()).kill_switch_file
    chosen = file or watched
    if chosen is None:
        raise click.UsageError("name a FILE, or set REVERSI_KILL_FILE or kill_switch_file")
    if watched is None or chosen.absolute() != watched.absolute():
        note(_nobody_else_watches(watched))
    return chosen


def _nobody_else_watches(watched: Path | None) -> str:
    text = f"only processes configured with this file watch it; this configuration watches {watched or 'none'}"
    return text if watched else f"{text}: set kill_switch_file or REVERSI_KILL_FILE"


def _unusable(path: Path, error: OSError) -> click.ClickException:
    return click.ClickException(f"{path}: {error.strerror or error}")
