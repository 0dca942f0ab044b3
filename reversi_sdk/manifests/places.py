"""Where a manifest names other tools, in either form: one list for every rule that looks at all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from reversi_sdk.canonical import Path
from reversi_sdk.references import Spelling


class Part(StrEnum):
    """What a named tool is called for."""

    UNDO = "undo"
    WHEN_ABSENT = "when_absent"
    VERIFICATION = "verification"
    LOOKUP = "lookup"
    DRAFT = "draft"
    PROMOTE = "promote"
    DISCARD = "discard"


@dataclass(frozen=True, slots=True)
class Place:
    """One object of a manifest that names a tool, as far as it could be read."""

    part: Part
    path: Path
    data: Mapping[str, Any]
    spelling: Spelling

    @property
    def tool_field(self) -> str:
        """The field that names the tool here."""
        return "tool" if self.spelling is Spelling.FLAT else "operation"

    @property
    def map_field(self) -> str:
        """The field that holds the arguments here."""
        is_undo = self.part in (Part.UNDO, Part.WHEN_ABSENT)
        return "argument_map" if is_undo and self.spelling is Spelling.FLAT else "arguments"


def is_contract(manifest: Mapping[str, Any]) -> bool:
    """Whether a manifest uses the contract form (D2)."""
    return isinstance(manifest.get("effect"), dict)


def places_of(manifest: Mapping[str, Any]) -> Iterator[Place]:
    """List every place that names a tool to call, in the order of the tables."""
    block: Mapping[str, Any] = manifest["effect"] if is_contract(manifest) else manifest
    path: Path = ("effect",) if is_contract(manifest) else ()
    spelling = Spelling.CONTRACT if is_contract(manifest) else Spelling.FLAT
    names = ("inverse", "compensate") if is_contract(manifest) else ("compensation",)
    for name in names:
        yield from _undo(block.get(name), (*path, name), spelling)
    yield from _one(Part.LOOKUP, block.get("lookup"), (*path, "lookup"), spelling)
    yield from _draft(block.get("draft"), (*path, "draft"), spelling)


def _one(part: Part, data: Any, path: Path, spelling: Spelling) -> Iterator[Place]:
    if isinstance(data, dict):
        yield Place(part, path, data, spelling)


def _undo(data: Any, path: Path, spelling: Spelling) -> Iterator[Place]:
    if not isinstance(data, dict):
        return
    yield Place(Part.UNDO, path, data, spelling)
    yield from _one(Part.VERIFICATION, data.get("verification"), (*path, "verification"), spelling)
    absent, absent_path = data.get("when_absent"), (*path, "when_absent")
    yield from _one(Part.WHEN_ABSENT, absent, absent_path, spelling)
    if isinstance(absent, dict):
        yield from _one(Part.VERIFICATION, absent.get("verification"), (*absent_path, "verification"), spelling)
    yield from _undo(data.get("fallback"), (*path, "fallback"), spelling)


def _draft(data: Any, path: Path, spelling: Spelling) -> Iterator[Place]:
    if not isinstance(data, dict):
        return
    yield Place(Part.DRAFT, path, data, spelling)
    yield from _one(Part.PROMOTE, data.get("promote"), (*path, "promote"), spelling)
    yield from _one(Part.DISCARD, data.get("discard"), (*path, "discard"), spelling)
