"""A connector: a named table of tools, and the table bound to a state that its tools can run on.

`ConnectorSpec` is the table alone: manifests and schemas come from it without any credential or root. `Connector` is
what can be called. A call checks its arguments before anything happens, and no registered secret leaves in an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from connectors.core.fields import check_arguments, input_schema
from connectors.core.manifests import manifest_of
from connectors.core.outcomes import EffectUncertainError, ToolError
from connectors.core.redaction import Redactor
from connectors.core.tool import CallContext, Tool


@dataclass(frozen=True, slots=True)
class ConnectorSpec:
    """The table of a connector, in the order in which it is shown."""

    name: str
    rows: tuple[Tool, ...]

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The rows by tool name."""
        return {row.name: row for row in self.rows}

    def manifests(self) -> list[dict[str, Any]]:
        """The manifest of each tool, in table order."""
        return [manifest_of(row) for row in self.rows]

    @property
    def input_schemas(self) -> Mapping[str, dict[str, Any]]:
        """The JSON Schema of each tool's arguments."""
        return {row.name: input_schema(row.inputs) for row in self.rows}

    def bind(self, state: object, *, secrets: Iterable[str] = ()) -> Connector:
        """Make the table callable on `state`; `secrets` are kept out of every error."""
        return Connector(self, state, Redactor.for_secrets(secrets))


@dataclass(frozen=True, slots=True)
class Connector:
    """A connector that can be called."""

    spec: ConnectorSpec
    state: object = field(repr=False)
    redactor: Redactor = field(default_factory=Redactor, repr=False)

    @property
    def name(self) -> str:
        """The connector's name, the prefix of its tools."""
        return self.spec.name

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The rows by tool name."""
        return self.spec.tools

    @property
    def input_schemas(self) -> Mapping[str, dict[str, Any]]:
        """The JSON Schema of each tool's arguments."""
        return self.spec.input_schemas

    def manifests(self) -> list[dict[str, Any]]:
        """The manifest of each tool, in table order."""
        return self.spec.manifests()

    def call(self, tool: str, arguments: Mapping[str, Any], context: CallContext | None = None) -> Any:
        """Run a tool and return its JSON-able result.

        Raises `ToolError` when the thing was definitely not done, `EffectUncertainError` when nobody can say.
        """
        row = self.tools.get(tool)
        if row is None:
            raise ToolError(f"connector {self.name} has no tool {tool}")
        try:
            return row.run(self.state, check_arguments(row.inputs, arguments), context or CallContext())
        except (ToolError, EffectUncertainError) as error:
            raise type(error)(self.redactor.clean(str(error))) from None
        except Exception as error:  # noqa: BLE001 - a bug in a tool must become an outcome, and may quote a secret
            raise self._bug(row, error) from None

    def _bug(self, row: Tool, error: Exception) -> ToolError | EffectUncertainError:
        """Word an undeclared exception; whether the effect happened is unknown unless the tool only reads."""
        text = self.redactor.clean(f"{row.name} broke down: {type(error).__name__}: {error}")
        return ToolError(text) if row.is_reading else EffectUncertainError(text)
