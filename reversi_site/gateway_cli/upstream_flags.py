"""The flags that name one MCP server, and the upstream that they make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from gateway.core.upstream_specs import NO_SERVER_URL, UpstreamSpec, derived_name, is_server_url

Command = Callable[..., Any]


def upstream_options(command: Command) -> Command:
    """Add `--upstream-cmd`, `--upstream-arg` and `--upstream-url`: the arguments of `spec_of`."""
    options = (
        click.option("--upstream-cmd", metavar="CMD", help="The program that is the server; it runs without a shell."),
        click.option("--upstream-arg", "upstream_args", metavar="ARG", multiple=True, help="Its argument; repeatable."),
        click.option("--upstream-url", metavar="URL", help="Where the server is, instead of a program."),
    )
    # The last one added is the first one shown.
    for option in reversed(options):
        command = option(command)
    return command


def spec_of(program: str | None, arguments: Sequence[str], url: str | None) -> UpstreamSpec | None:
    """Return the upstream that the flags name, under a name of its own; None when they name none."""
    if program is None and url is None:
        if arguments:
            raise click.UsageError("--upstream-arg belongs to --upstream-cmd")
        return None
    if program is not None and url is not None:
        raise click.UsageError("--upstream-cmd and --upstream-url exclude each other")
    if url is not None:
        return _reached_at(url, arguments)
    return _started_by(program or "", arguments)


def _reached_at(url: str, arguments: Sequence[str]) -> UpstreamSpec:
    if arguments:
        raise click.UsageError("--upstream-arg belongs to --upstream-cmd")
    if not is_server_url(url):
        raise click.UsageError(f"--upstream-url {NO_SERVER_URL}")
    return UpstreamSpec(name=derived_name(url=url), url=url)


def _started_by(program: str, arguments: Sequence[str]) -> UpstreamSpec:
    if not program.strip():
        raise click.UsageError("--upstream-cmd must not be empty")
    if " " in program.strip() and not Path(program).exists():
        raise click.UsageError("--upstream-cmd names one program; give each of its arguments with --upstream-arg")
    command, folder = (program, *arguments), Path.cwd()
    return UpstreamSpec(name=derived_name(command=command, cwd=folder), command=command, cwd=folder)
