"""What a server says about one tool, read from what `tools/list` answered, whatever that holds."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reversi_sdk.canonical import CanonicalError, canonical_bytes, sha256_hex
from reversi_sdk.manifests.fields import TOOL_PATTERN

# What can stand in a reference and in a comment as it is.
_PLAIN_ARGUMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_SCHEMA_HASH_DIGITS = 16
# The gateway offers its own tools under these names and lets no server take them.
_RESERVED = "reversi."


@dataclass(frozen=True, slots=True)
class Hints:
    """The server's annotations; None where it says nothing that can be understood."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool as it was offered; `inputs` and `outputs` are the schemas of its arguments and of its answer's members."""

    name: str
    description: str = ""
    inputs: Mapping[str, Mapping[str, Any]] | None = None
    required: tuple[str, ...] = ()
    outputs: Mapping[str, Mapping[str, Any]] | None = None
    hints: Hints = Hints()
    schema_hash: str | None = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A tool that gets no draft, and why."""

    name: str
    reason: str


def read_offers(
    offered: Sequence[Mapping[str, Any]], *, declared: Collection[str]
) -> tuple[tuple[OfferedTool, ...], tuple[LeftOut, ...]]:
    """Return the tools that a manifest can be written for, each once, and the others."""
    tools: dict[str, OfferedTool] = {}
    left_out: list[LeftOut] = []
    for raw in offered:
        name = raw.get("name")
        reason = _reason_against(name, tools, declared)
        if reason is None and isinstance(name, str):
            tools[name] = _read(name, raw)
        else:
            left_out.append(LeftOut(str(name), reason or ""))
    return tuple(tools.values()), tuple(left_out)


def _reason_against(name: object, known: Collection[str], declared: Collection[str]) -> str | None:
    if not isinstance(name, str):
        return "has no name"
    if not re.fullmatch(TOOL_PATTERN, name):
        return "no manifest can have this name: letters, digits and _ . : / - only, and no empty part between slashes"
    if name.startswith(_RESERVED):
        return "the gateway keeps names like this to itself"
    if name in declared:
        return "has a manifest already"
    return "is offered twice; the first is drafted" if name in known else None


def _read(name: str, raw: Mapping[str, Any]) -> OfferedTool:
    description = raw.get("description")
    schema = raw.get("inputSchema")
    return OfferedTool(
        name=name,
        description=description if isinstance(description, str) else "",
        inputs=_properties(schema),
        required=_required(schema),
        outputs=_properties(raw.get("outputSchema")),
        hints=_hints(raw.get("annotations")),
        schema_hash=_schema_hash(schema),
    )


def _properties(schema: object) -> Mapping[str, Mapping[str, Any]] | None:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping):
        return None
    plain = {name: value for name, value in properties.items() if is_plain(name)}
    return {name: value if isinstance(value, Mapping) else {} for name, value in plain.items()}


def _required(schema: object) -> tuple[str, ...]:
    required = schema.get("required") if isinstance(schema, Mapping) else None
    return tuple(name for name in required if isinstance(name, str)) if isinstance(required, list) else ()


def is_plain(name: object) -> bool:
    """Tell whether a member's name can stand in a reference as it is."""
    return isinstance(name, str) and _PLAIN_ARGUMENT.fullmatch(name) is not None


def _hints(annotations: object) -> Hints:
    given = annotations if isinstance(annotations, Mapping) else {}
    read_only, destructive, idempotent = (
        value if isinstance(value, bool) else None
        for value in (given.get(f"{word}Hint") for word in ("readOnly", "destructive", "idempotent"))
    )
    return Hints(read_only, destructive, idempotent)


def _schema_hash(schema: object) -> str | None:
    if not isinstance(schema, Mapping):
        return None
    try:
        return f"sha256:{sha256_hex(canonical_bytes(schema))[:_SCHEMA_HASH_DIGITS]}"
    except CanonicalError:
        return None
