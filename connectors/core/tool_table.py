"""The table of a connector's tools as it stands in the documentation."""

from __future__ import annotations

from connectors.core.connector import Connector, ConnectorSpec
from connectors.core.tool import Tool

HEADER = ("Tool", "Effect", "Permission", "Undone by", "What stays")


def tool_table(connector: Connector | ConnectorSpec) -> str:
    """Render the tools of a connector as a Markdown table, one row a tool, in table order."""
    rows = [HEADER, ("---",) * len(HEADER), *(_cells(tool) for tool in connector.tools.values())]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _cells(tool: Tool) -> tuple[str, ...]:
    undone_by = f"`{tool.undo.tool}`" if tool.undo else "only used to undo" if tool.is_compensation_only else ""
    residue = "; ".join(tool.undo.residue) if tool.undo else ""
    cells = (f"`{tool.name}`", f"{tool.effect.value}: {tool.effect.label}", f"`{tool.permission}`", undone_by, residue)
    return tuple(cell.replace("|", r"\|") for cell in cells)
