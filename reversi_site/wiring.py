"""Which tools this deployment reaches: what the configuration names, as the executor and reader of rollbacks.

A step is undone through the upstream that its call went to, where that is known here: from the configuration, or
because a gateway on this store has served it. What the upstream does not offer goes to the connectors in this process,
and what they do not offer to the command. A command given on the command line is meant for every undo and comes first.
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from django.conf import settings

from approvals.core.upstreams import upstream_of as default_upstream
from connectors.settings import build_connector
from gateway.core.upstream_specs import without_session
from gateway.executors import Door, UpstreamExecutor, UpstreamReader
from gateway.sessions import session_with
from reversi_sdk.errors import ReversiError
from reversi_site.configuration import Configuration, ConfigurationInvalid, ConnectorUpstream
from reversi_site.recorded_upstreams import Recorded, load_recorded, place_of, where_it_is
from rollback.core.ports import ToolExecutor, ToolReader, Tools
from rollback.executors.combined import CombinedExecutor, CombinedReader
from rollback.executors.command import CheckingExecutor, CommandExecutor, CommandReader, split_command
from rollback.executors.connector import ConnectorExecutor, ConnectorReader

if TYPE_CHECKING:
    from connectors.core.connector import Connector

Connectors = Mapping[str, "Connector"]
Side = TypeVar("Side", ToolExecutor, ToolReader)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Held:
    """An MCP server as it is reached from here; without a door only the gateway that holds its session reaches it."""

    door: Door | None
    tools: frozenset[str] | None = None


def configured_tools() -> Tools:
    """Return what a worker reaches; `settings.REVERSI_TOOLS` names this function."""
    return build_tools(settings.CONFIGURATION)


def build_tools(
    configuration: Configuration,
    *,
    compensator_cmd: str | None = None,
    reader_cmd: str | None = None,
    verify_cmd: str | None = None,
    held: Mapping[str, Held] | None = None,
) -> Tools:
    """Return the tools of a configuration; the commands given here come before it.

    `held` are upstreams that this very process holds a session with. Raises ConfigurationInvalid, RecordDamaged, and
    what the connectors raise for a root that cannot be one.
    """
    recorded = load_recorded(Path(settings.DATA))
    wiring = _Wiring(
        configuration=configuration,
        connectors=tuple(build_connectors(configuration).values()),
        recorded=recorded,
        servers={**_known_servers(configuration, recorded), **(held or {})},
        compensator_cmd=compensator_cmd,
        reader_cmd=reader_cmd,
        verify_cmd=verify_cmd,
    )
    return wiring.tools()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wiring:
    """Everything that tools are put together from."""

    configuration: Configuration
    connectors: tuple[Connector, ...]
    recorded: Mapping[str, Recorded]
    servers: Mapping[str, Held]
    compensator_cmd: str | None
    reader_cmd: str | None
    verify_cmd: str | None
    _by_upstream: dict[str, Tools] = field(default_factory=dict)

    def tools(self) -> Tools:
        """Return the tools for steps of no upstream that is known here."""
        commands = self.configuration.compensator_cmd or self.compensator_cmd
        is_reaching = bool(self.connectors or commands or self.servers or self.recorded)
        executor, reader = self._executor(self.connectors), self._reader(self.connectors)
        return Tools(self._checked(executor), reader, upstreams=self._at, is_reaching=is_reaching)

    def _at(self, upstream: str) -> Tools:
        """Return the tools for steps whose calls went to this upstream."""
        if upstream not in self._by_upstream:
            self._by_upstream[upstream] = self._made_for(upstream)
        return self._by_upstream[upstream]

    def _made_for(self, upstream: str) -> Tools:
        is_elsewhere = self._is_elsewhere(upstream)
        connectors = self._connectors_at(upstream, configured=() if is_elsewhere else self.connectors)
        executor, reader = self._executor(connectors), self._reader(connectors)
        name = upstream if upstream in self.servers else without_session(upstream)
        server = None if is_elsewhere else self.servers.get(name)
        if server is None:
            return Tools(self._checked(executor), reader)
        if server.door is None:
            return Tools(self._checked(executor), reader, waits_for=upstream)
        if self.compensator_cmd is None:
            executor = UpstreamExecutor(name, server.door, executor, server.tools)
        if self.reader_cmd is None:
            reader = UpstreamReader(name, server.door, reader, server.tools)
        return Tools(self._checked(executor), reader)

    def _is_elsewhere(self, upstream: str) -> bool:
        """Tell whether calls on this store went to another upstream than what this configuration has under the name."""
        name = without_session(upstream)
        recorded, place = self.recorded.get(name), place_of(self.configuration, name)
        if recorded is None or recorded.place in (None, place):
            return False
        told = "the upstream %s: %s, so it is not asked; name its own configuration with --config or REVERSI_CONFIG"
        logger.warning(told, upstream, where_it_is(recorded.place, place))
        return True

    def _connectors_at(self, upstream: str, *, configured: tuple[Connector, ...]) -> tuple[Connector, ...]:
        """Return the connectors that a gateway was given with this upstream, else the configured ones."""
        recorded = self.recorded.get(without_session(upstream))
        if recorded is None or not recorded.connectors:
            return configured
        return tuple(_built(recorded.connectors))

    def _executor(self, connectors: Iterable[Connector]) -> ToolExecutor:
        command = _command(CommandExecutor, self.compensator_cmd or self.configuration.compensator_cmd)
        is_command_first = self.compensator_cmd is not None
        return CombinedExecutor(*_in_order(ConnectorExecutor(*connectors), command, is_second_first=is_command_first))

    def _reader(self, connectors: Iterable[Connector]) -> ToolReader:
        command = _command(CommandReader, self.reader_cmd or self.configuration.reader_cmd)
        is_command_first = self.reader_cmd is not None
        return CombinedReader(*_in_order(ConnectorReader(*connectors), command, is_second_first=is_command_first))

    def _checked(self, executor: ToolExecutor) -> ToolExecutor:
        """Return the executor with the operator's own check after each undo, where there is one."""
        return executor if self.verify_cmd is None else CheckingExecutor(executor, split_command(self.verify_cmd))


def _known_servers(configuration: Configuration, recorded: Mapping[str, Recorded]) -> Mapping[str, Held]:
    """Return the MCP servers that are known here, by name: what is configured, and what gateways have recorded."""
    specs = {name: each.spec for name, each in recorded.items() if each.spec is not None}
    specs |= {spec.name: spec for spec in configuration.servers}
    tools = {name: each.tools for name, each in recorded.items()}
    return {name: Held(None if spec.is_live else session_with(spec), tools.get(name)) for name, spec in specs.items()}


def build_connectors(configuration: Configuration) -> Connectors:
    """Build the connectors of the configured upstreams, by upstream name; two may not offer one tool."""
    connectors: dict[str, Connector] = {}
    owners: dict[str, str] = {}
    for upstream in configuration.connectors:
        connector = _build(upstream)
        for tool in connector.tools:
            if tool in owners:
                raise ConfigurationInvalid(f"upstreams: both {owners[tool]} and {upstream.name} offer {tool}")
            owners[tool] = upstream.name
        connectors[upstream.name] = connector
    return connectors


def _build(upstream: ConnectorUpstream) -> Connector:
    return build_connector(upstream.connector, root=upstream.root, backup_dir=upstream.backup_dir, environ=os.environ)


def _built(upstreams: Iterable[ConnectorUpstream]) -> Iterable[Connector]:
    for upstream in upstreams:
        try:
            yield _build(upstream)
        except ReversiError as error:
            # Its root is gone, or its credentials: then nobody runs its undos, which is what is reported.
            logger.warning("the recorded connector %s cannot be used: %s", upstream.name, error)


def configured_upstream_of(tool: str) -> str:
    """Return the upstream of a tool in this deployment; `settings.UPSTREAM_OF` names this function.

    That is the connector that offers it; else the tool's prefix.
    """
    owners = (name for name, tools in _connector_tools(settings.CONFIGURATION).items() if tool in tools)
    return next(owners, default_upstream(tool))


@functools.lru_cache(maxsize=1)
def _connector_tools(configuration: Configuration) -> Mapping[str, frozenset[str]]:
    return {name: frozenset(connector.tools) for name, connector in build_connectors(configuration).items()}


def _command(kind: Callable[[Sequence[str]], Side], command: str | None) -> Side | None:
    return None if command is None else kind(split_command(command))


def _in_order(first: Side, second: Side | None, *, is_second_first: bool) -> Sequence[Side]:
    if second is None:
        return [first]
    return [second, first] if is_second_first else [first, second]
