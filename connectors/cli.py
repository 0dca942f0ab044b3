"""The command `reversi-connectors`: manifests, an MCP server, one compensation call, one read.

Exit codes: 0 fine, 1 definitely not done, 64 wrong options or malformed input, and for `compensate` 75 when nobody can
say whether the undo happened. There a breakdown or an interruption is 75 too: it must never be taken for "not done".
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from connectors.catalog import connector_names, connector_spec
from connectors.compensator import CallMalformed, compensator_for, find_tool
from connectors.core.manifests import manifests_yaml
from connectors.core.outcomes import EffectUncertainError, ToolError
from connectors.settings import build_connector, enabled_connectors
from reversi_sdk.errors import InvalidInput

FINE = 0
NOT_DONE = 1
BAD_INPUT = 64
OUTCOME_UNKNOWN = 75

INPUT_LIMIT_BYTES = 32 * 1024 * 1024

Command = Callable[..., Any]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    sys.exit(run_command(arguments))


def run_command(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        code = cli.main(arguments, prog_name="reversi-connectors", standalone_mode=False)
        return code if isinstance(code, int) else FINE
    except click.ClickException as error:
        error.show()
        return BAD_INPUT
    except click.Abort:
        click.echo("interrupted", err=True)
        return NOT_DONE


def _paths(command: Command) -> Command:
    directory = click.Path(path_type=Path, file_okay=False)
    add_root = click.option("--root", type=directory, default=Path(), help="Directory of fs. Default: the current one.")
    add_backups = click.option("--backup-dir", type=directory, help="Backups of fs. Default: ROOT/.reversi-backups.")
    return add_root(add_backups(command))


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExamples:\n"
    "  reversi-connectors manifests fs --format yaml > manifests/fs.yaml\n"
    "  reversi-connectors serve fs --root ./work\n"
    "  reversi-connectors compensate --root ./work < call.json\n"
    '  echo \'{"tool": "fs.stat", "arguments": {"path": "a.txt"}}\' | reversi-connectors read --root ./work',
)
def cli() -> None:
    """Tools on real systems, each with a manifest and an undo."""


@cli.command(
    epilog="\b\nExamples:\n"
    "  reversi-connectors manifests fs --format yaml > manifests/fs.yaml\n"
    "  reversi-connectors manifests all --format json"
)
@click.argument("name", type=click.Choice(["all", *connector_names()]))
@click.option("--format", "form", type=click.Choice(["json", "yaml"]), default="yaml", show_default=True)
def manifests(name: str, form: str) -> int:
    """Print the manifests of connector NAME, or of all."""
    names = connector_names() if name == "all" else (name,)
    found = [manifest for chosen in names for manifest in connector_spec(chosen).manifests()]
    click.echo(json.dumps(found, indent=2) if form == "json" else manifests_yaml(found), nl=form == "json")
    return FINE


@cli.command(
    short_help="Serve a connector's tools over MCP.",
    epilog="\b\nExamples:\n"
    "  reversi-connectors serve fs --root ./work\n"
    "  reversi-gateway --manifests manifests --upstream-cmd reversi-connectors --upstream-arg serve \\\n"
    "    --upstream-arg fs --upstream-arg --root --upstream-arg ./work\n"
    "\n\b\nIn the settings of an MCP client:\n"
    '  {"command": "reversi-connectors", "args": ["serve", "fs", "--root", "/srv/work"]}\n'
    "\n\b\nExit codes:\n"
    "  0 the client left or a signal ended it, 64 wrong options or a line that is too long",
)
@click.argument("name", type=click.Choice(connector_names()))
@_paths
def serve(name: str, root: Path, backup_dir: Path | None) -> int:
    """Serve connector NAME as an MCP server on stdin and stdout, its undo tools too.

    Nothing but the protocol is written to stdout. Put a gateway in front of it to have its calls journaled.
    """
    try:
        connector = build_connector(name, root=root, backup_dir=backup_dir, environ=os.environ)
        # The protocol's library takes a second to import, which no other command should wait for.
        from connectors.serving import serve as serve_connector

        serve_connector(connector)
        return FINE
    except InvalidInput as error:
        return _fail(error, BAD_INPUT)


@cli.command(
    short_help="Run one undo, given as JSON on stdin.",
    epilog="\b\nExample:\n"
    '  reversi rollback run_1 --compensator-cmd "reversi-connectors compensate --root ./work"\n'
    "\n\b\nThe call on stdin:\n"
    '  {"run_id": "run_1", "step": 2, "tool": "fs.unmove_file", "original_tool": "fs.move_file",\n'
    '   "args": {...}, "idempotency_key": "...", "overwrite": false}\n'
    "\n\b\nExit codes:\n"
    "  0 undone, 1 not undone, 64 malformed call or options, 75 outcome unknown",
)
@_paths
def compensate(root: Path, backup_dir: Path | None) -> int:
    """Run one compensation call, given as JSON on stdin, and print the undo tool's result."""
    try:
        connectors = enabled_connectors(root=root, backup_dir=backup_dir, environ=os.environ)
        call = _json_input()
        return _print(compensator_for(connectors)(call))
    except InvalidInput as error:
        return _fail(error, BAD_INPUT)
    except ToolError as error:
        return _fail(error, NOT_DONE)
    except EffectUncertainError as error:
        return _fail(error, OUTCOME_UNKNOWN)
    except KeyboardInterrupt:
        return _fail("interrupted; the undo may or may not have happened", OUTCOME_UNKNOWN)
    except (OSError, TypeError, ValueError) as error:
        return _fail(f"the undo may have happened, but its result cannot be told: {error}", OUTCOME_UNKNOWN)


@cli.command(
    short_help="Run one read, given as JSON on stdin.",
    epilog="\b\nExample:\n"
    '  reversi rollback run_1 --reader-cmd "reversi-connectors read --root ./work"\n'
    "\n\b\nThe read on stdin:\n"
    '  {"tool": "fs.stat", "arguments": {"path": "a.txt"}}\n'
    "\n\b\nExit codes:\n"
    "  0 read, 1 not read, 64 malformed input or options",
)
@_paths
def read(root: Path, backup_dir: Path | None) -> int:
    """Run one read-only tool, given as JSON on stdin, and print its result."""
    try:
        connectors = enabled_connectors(root=root, backup_dir=backup_dir, environ=os.environ)
        name, arguments = _read_request(_json_input())
        connector, tool = find_tool(connectors, name)
        if not tool.is_reading:
            raise ToolError(f"{name} changes things: only read-only tools are run here")
        return _print(connector.call(name, arguments))
    except InvalidInput as error:
        return _fail(error, BAD_INPUT)
    except (ToolError, OSError) as error:
        return _fail(error, NOT_DONE)


def _json_input() -> Any:
    """Read one JSON document from stdin."""
    text = sys.stdin.buffer.read(INPUT_LIMIT_BYTES + 1)
    if len(text) > INPUT_LIMIT_BYTES:
        raise CallMalformed(f"the input is larger than {INPUT_LIMIT_BYTES} bytes")
    try:
        return json.loads(text.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise CallMalformed(f"the input is not JSON: {error}") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


def _read_request(data: Any) -> tuple[str, Any]:
    if not isinstance(data, dict) or not isinstance(data.get("tool"), str):
        raise CallMalformed('the input must be an object with "tool" and "arguments"')
    arguments = data.get("arguments", {})
    if not isinstance(arguments, dict):
        raise CallMalformed('"arguments" must be an object')
    return data["tool"], arguments


def _print(result: Any) -> int:
    click.echo(json.dumps(result))
    sys.stdout.flush()
    return FINE


def _fail(error: object, code: int) -> int:
    click.echo(str(error), err=True)
    return code
