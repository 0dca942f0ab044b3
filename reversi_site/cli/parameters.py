"""What arguments must look like; all of it is checked before the store is opened, so bad input writes nothing."""

from __future__ import annotations

import json
import math
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import click

from ledger.core.errors import BadField
from ledger.core.text import require_text
from ledger.core.values import RUN_ID

NAME_LIMIT = 200
NOTE_LIMIT = 2000
HALT_LIMIT = 500
DIGEST_FORM = re.compile(r"[0-9a-f]{64}")


class RunId(click.ParamType[str]):
    """A run id in its one form (D11)."""

    name = "run"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the id."""
        if not RUN_ID.fullmatch(value):
            self.fail(f"{value!r} is no run id: letters, digits and _ . : - only, at most 128", param, ctx)
        return str(value)


class Text(click.ParamType[str]):
    """Storable text, not empty, of bounded length."""

    name = "text"

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text."""
        if not value.strip():
            self.fail("must not be empty", param, ctx)
        try:
            return require_text(param.human_readable_name if param else "text", value, limit=self.limit)
        except BadField as error:
            self.fail(str(error), param, ctx)


class Steps(click.ParamType[tuple[int, ...]]):
    """Step numbers separated by commas."""

    name = "steps"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Return the numbers, each once, ascending."""
        if isinstance(value, tuple):
            return value
        parts = value.split(",")
        if not all(part.strip().isascii() and part.strip().isdecimal() and len(part) <= 9 for part in parts):
            self.fail(f"{value!r} must be step numbers like 3,5", param, ctx)
        return tuple(sorted({int(part) for part in parts}))


class Duration(click.ParamType[int]):
    """A duration in milliseconds, written like `1h`."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return milliseconds."""
        from reversi_sdk.durations import parse_duration
        from reversi_sdk.errors import ReversiError

        try:
            return parse_duration(value)
        except ReversiError as error:
            self.fail(str(error), param, ctx)


class Boxed:
    """A value that was given, even if it is null."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Json(click.ParamType[Boxed]):
    """A JSON value."""

    name = "json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Boxed:
        """Return the value, boxed, so that `null` differs from an option that was not given."""
        try:
            return Boxed(json.loads(value, parse_constant=_refuse_constant, parse_float=_finite))
        except (ValueError, RecursionError) as error:
            self.fail(f"is not JSON: {error}", param, ctx)


class CommandLine(click.ParamType[str]):
    """A command, split like a shell does and run without one."""

    name = "command"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the command."""
        try:
            parts = shlex.split(value)
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)
        if not parts:
            self.fail("must not be empty", param, ctx)
        if shutil.which(parts[0]) is None:
            self.fail(f"{parts[0]!r} is no program that can be run here", param, ctx)
        return str(value)


class Digest(click.ParamType[str]):
    """A plan's digest."""

    name = "digest"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the digest."""
        if not DIGEST_FORM.fullmatch(value):
            self.fail(f"{value!r} is no digest: 64 hex digits, as `reversi plan --json` shows", param, ctx)
        return str(value)


class Folder(click.ParamType[str]):
    """The path of a folder that may not exist yet."""

    name = "folder"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the path."""
        if not value or "\0" in value:
            self.fail("must be the path of a folder", param, ctx)
        return str(value)


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse_constant(text)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number that can be kept")


RUN = RunId()
NAME = Text(NAME_LIMIT)
NOTE = Text(NOTE_LIMIT)
HALT_REASON = Text(HALT_LIMIT)
STEPS = Steps()
DURATION = Duration()
JSON = Json()
FOLDER = Folder()
FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
COMMAND = CommandLine()
DIGEST = Digest()

Command = Callable[..., Any]


def json_option(command: Command) -> Command:
    """Add `--json`."""
    return click.option("--json", "is_json", is_flag=True, help="Print one JSON document.")(command)


def run_or_last(command: Command) -> Command:
    """Add the argument RUN and the option `--last`, of which one is needed."""
    command = click.option("--last", "is_last", is_flag=True, help="The run that was opened last.")(command)
    return click.argument("run", type=RUN, required=False, metavar="RUN|--last")(command)


def selection_options(command: Command) -> Command:
    """Add `--steps` and `--to-step`."""
    command = click.option("--to-step", type=click.IntRange(min=0), metavar="N", help="Undo what came after step N.")(
        command
    )
    return click.option("--steps", type=STEPS, metavar="N,…", help="Undo these steps, and what must go first.")(command)


def require_one_run(run: str | None, is_last: bool) -> None:
    """Refuse both a run and `--last`, and neither; before the store is opened."""
    if (run is None) is not is_last:
        raise click.UsageError("name a run, or say --last")


def require_one_selection(steps: tuple[int, ...] | None, to_step: int | None) -> None:
    """Refuse two ways of choosing steps at once."""
    if steps is not None and to_step is not None:
        raise click.UsageError("--steps and --to-step cannot be combined")
