"""Undo and read through connectors in this process (D27).

A connector's definite failure is one; everything else that escapes it leaves the outcome unknown, since an exception
that nobody declared says nothing about whether the effect happened.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from connectors.core.connector import Connector
from connectors.core.fields import FieldKind
from connectors.core.tool import CallContext
from reversi_sdk.errors import EffectUncertainError, ToolError
from rollback.core.ports import Answer, ReadFailed, UndoAnswer, UndoCall, UndoFailed, Undone, UndoUnknown

KEY_INPUT = "idempotency_key"
CONFIRM_INPUT = "confirm"


class ConnectorExecutor:
    """Sends undos to the connectors it is given."""

    def __init__(self, *connectors: Connector) -> None:
        self._connectors = {tool: connector for connector in connectors for tool in connector.tools}

    def can_run(self, tool: str) -> bool:
        """Whether one of the connectors offers the tool."""
        return tool in self._connectors

    def honours_key(self, tool: str) -> bool:
        """Whether the tool carries the key: by its row, or as an input of that name (D41 b)."""
        connector = self._connectors.get(tool)
        if connector is None:
            return False
        row = connector.tools[tool]
        return row.key_carrier is not None or KEY_INPUT in row.inputs

    def _filled(self, call: UndoCall) -> Mapping[str, Any]:
        """Return the arguments with a required confirmation, which is never a map's to give (D41 a)."""
        confirm = self._connectors[call.tool].tools[call.tool].inputs.get(CONFIRM_INPUT)
        if confirm is None or not confirm.is_required or confirm.kind is not FieldKind.BOOLEAN:
            return call.args
        return {**call.args, CONFIRM_INPUT: True}

    def compensate(self, call: UndoCall) -> UndoAnswer:
        """Call the tool; only its declared failure counts as not done."""
        context = CallContext(
            idempotency_key=call.idempotency_key,
            is_overwrite_allowed=call.is_overwrite_allowed,
            timeout_ms=call.timeout_ms,
        )
        try:
            self._connectors[call.tool].call(call.tool, self._filled(call), context)
        except ToolError as error:
            return UndoFailed(str(error))
        except (EffectUncertainError, TimeoutError, ConnectionError) as error:
            return UndoUnknown(str(error) or type(error).__name__)
        except Exception as error:  # noqa: BLE001 - whatever a tool raises, its effect may have happened
            return UndoUnknown(f"{type(error).__name__}: {error}")
        return Undone()


class ConnectorReader:
    """Reads through the connectors it is given; never through a tool that changes something."""

    def __init__(self, *connectors: Connector) -> None:
        self._connectors = {
            tool: connector for connector in connectors for tool, row in connector.tools.items() if row.is_reading
        }

    def can_read(self, tool: str) -> bool:
        """Whether one of the connectors offers the tool as a read."""
        return tool in self._connectors

    def read(self, tool: str, arguments: Mapping[str, Any], *, timeout_ms: int) -> Answer | ReadFailed:
        """Call the tool and return its answer; a read that raises has failed, whatever it raised."""
        try:
            return Answer(self._connectors[tool].call(tool, arguments, CallContext(timeout_ms=timeout_ms)))
        except Exception as error:  # noqa: BLE001 - a read changes nothing: any failure is only a failed read
            return ReadFailed(str(error) or type(error).__name__)
