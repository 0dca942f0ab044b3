"""The memory server's graph as a value: which entities, with which observations, and which relations, in no order."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

Triple: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True)
class Graph:
    """Entities (name, type, sorted observations) and relations (from, kind, to), each with how often it stands."""

    entities: Counter[tuple[str, str, tuple[str, ...]]]
    relations: Counter[Triple]

    @property
    def names(self) -> set[str]:
        """The names of all entities."""
        return {name for name, _, _ in self.entities}


def graph_of(path: Path) -> Graph:
    """Read the server's file."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    items = [json.loads(line) for line in lines if line]
    entities = [item for item in items if item["type"] == "entity"]
    relations = [item for item in items if item["type"] == "relation"]
    return Graph(
        Counter((each["name"], each["entityType"], tuple(sorted(each["observations"]))) for each in entities),
        Counter((each["from"], each["relationType"], each["to"]) for each in relations),
    )


def write_graph(path: Path, entities: Sequence[Mapping[str, Any]], relations: Sequence[Mapping[str, Any]]) -> None:
    """Write a graph as the server does."""
    lines = [{"type": "entity", **each} for each in entities] + [{"type": "relation", **each} for each in relations]
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
