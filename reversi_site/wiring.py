"""Which tools this deployment reaches: what the configuration names, as the executor and reader of rollbacks.

In-process connectors come first; a command takes what they do not offer. A command given on the command line is
meant for every undo and comes before everything else.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from django.conf import settings

from approvals.core.upstreams import upstream_of as default_upstream
from connectors.settings import build_connector
from reversi_site.configuration import Configuration, ConfigurationInvalid
from rollback.core.ports import ToolExecutor, ToolReader, Tools
from rollback.executors.combined import CombinedExecutor, CombinedReader
from rollback.executors.command import CheckingExecutor, CommandExecutor, CommandReader, split_command
from rollback.executors.connector import ConnectorExecutor, ConnectorReader

if TYPE_CHECKING:
    from connectors.core.connector import Connector

Connectors = Mapping[str, "Connector"]
Door = TypeVar("Door", ToolExecutor, ToolReader)


def configured_tools() -> Tools:
    """Return what a worker reaches; `settings.REVERSI_TOOLS` names this function."""
    return build_tools(settings.CONFIGURATION)


def build_tools(
    configuration: Configuration,
    *,
    compensator_cmd: str | None = None,
    reader_cmd: str | None = None,
    verify_cmd: str | None = None,
) -> Tools:
    """Return the tools of a configuration; the commands given here come before it.

    Raises ConfigurationInvalid, and what the connectors raise for a root that cannot be one.
    """
    connectors = build_connectors(configuration).values()
    executors = _in_order(
        ConnectorExecutor(*connectors),
        _command(CommandExecutor, compensator_cmd or configuration.compensator_cmd),
        is_second_first=compensator_cmd is not None,
    )
    readers = _in_order(
        ConnectorReader(*connectors),
        _command(CommandReader, reader_cmd or configuration.reader_cmd),
        is_second_first=reader_cmd is not None,
    )
    executor: ToolExecutor = CombinedExecutor(*executors)
    if verify_cmd is not None:
        executor = CheckingExecutor(executor, split_command(verify_cmd))
    return Tools(executor, CombinedReader(*readers))


def build_connectors(configuration: Configuration) -> Connectors:
    """Build the connectors of the configured upstreams, by upstream name; two may not offer one tool."""
    connectors: dict[str, Connector] = {}
    owners: dict[str, str] = {}
    for upstream in configuration.upstreams:
        connector = build_connector(
            upstream.connector, root=upstream.root, backup_dir=upstream.backup_dir, environ=os.environ
        )
        for tool in connector.tools:
            if tool in owners:
                raise ConfigurationInvalid(f"upstreams: both {owners[tool]} and {upstream.name} offer {tool}")
            owners[tool] = upstream.name
        connectors[upstream.name] = connector
    return connectors


def upstream_of(tool: str, connectors: Connectors) -> str:
    """Return the upstream that a tool belongs to: the configured one that offers it, else its prefix."""
    owners = (name for name, connector in connectors.items() if tool in connector.tools)
    return next(owners, default_upstream(tool))


def configured_upstream_of(tool: str) -> str:
    """Return the upstream of a tool in this deployment; `settings.UPSTREAM_OF` names this function."""
    return upstream_of(tool, _connectors_of(settings.CONFIGURATION))


@functools.lru_cache(maxsize=1)
def _connectors_of(configuration: Configuration) -> Connectors:
    return build_connectors(configuration)


def reaches_tools(configuration: Configuration) -> bool:
    """Tell whether the configuration names anything that could run an undo."""
    return bool(configuration.upstreams or configuration.compensator_cmd)


def _command(kind: Callable[[Sequence[str]], Door], command: str | None) -> Door | None:
    return None if command is None else kind(split_command(command))


def _in_order(first: Door, second: Door | None, *, is_second_first: bool) -> Sequence[Door]:
    if second is None:
        return [first]
    return [second, first] if is_second_first else [first, second]
