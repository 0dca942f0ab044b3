"""An upstream as the gateway sees it: tools that can be listed and called, whatever stands behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol

from mcp.shared.dispatcher import ProgressFnT

from gateway.mcp.session import OnUnsent
from gateway.mcp.tool_lists import ToolObject

__all__ = ["OnUnsent", "State", "ToolObject", "Upstream"]


class State(StrEnum):
    """Whether calls can be sent."""

    STARTING = "starting"
    READY = "ready"
    DOWN = "down"


class Upstream(Protocol):
    """Tools that are reached by their own names, whatever stands behind them."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def journal_name(self) -> str:
        """What steps remember it by: its name, and of a live one its present session."""

    @property
    def prefix(self) -> str:
        """What agents see in front of its tools' names."""

    @property
    def is_live(self) -> bool:
        """Whether only the gateway that holds its session may undo what it did."""

    @property
    def state(self) -> State:
        """Whether calls can be sent."""

    @property
    def known_tools(self) -> Sequence[ToolObject] | None:
        """Its tools as it listed them last, None when nobody has seen them."""

    async def list_tools(self, *, is_fresh: bool = False) -> Sequence[ToolObject]:
        """Return its tools as it lists them, from memory unless a fresh look is asked for."""

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        timeout_ms: int,
        idempotency_key: str | None = None,
        meta: Mapping[str, Any] | None = None,
        on_progress: ProgressFnT | None = None,
        on_unsent: OnUnsent | None = None,
    ) -> dict[str, Any]:
        """Call a tool and return the result as sent, an error result too; else raise one of the upstream errors.

        `on_unsent` is told when the caller is cancelled and nothing was sent.
        """


def agent_name(upstream: Upstream, tool: ToolObject) -> str:
    """Return the name by which agents and manifests know a tool that the upstream lists."""
    name: str = tool["name"]
    return upstream.prefix + name
