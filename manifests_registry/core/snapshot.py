"""The manifests a deployment enforces, taken together at one moment.

Each manifest was already valid by itself; `build_snapshot` checks what only all of them show: names that are used
twice, named tools that do not exist, and tools named for a job that their effect does not allow. The contract checks
of D4 judge contract blocks only; that a read-back, a look-up and a `before` read only read holds for both forms.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from reversi_sdk.canonical import path_text
from reversi_sdk.manifests.places import Part, Place, is_contract, places_of
from reversi_sdk.model import Effect, Manifest

_READS = {Part.VERIFICATION: "a verification", Part.LOOKUP: "a lookup"}
_CHANGES = frozenset({Part.UNDO, Part.DRAFT, Part.PROMOTE, Part.DISCARD})


@dataclass(frozen=True, slots=True)
class Entry:
    """One manifest with its normal form, its checksum and where it was read (`file:line`)."""

    manifest: Manifest
    normalized: Mapping[str, Any]
    checksum: str
    source: str

    @property
    def follow_ups(self) -> tuple[str, ...]:
        """Every tool that may be called because this one was, each once, in the order of the manifest."""
        places = [str(place.data[place.tool_field]) for place in places_of(self.normalized)]
        before = self.manifest.before
        return tuple(dict.fromkeys([*places, *([before.tool] if before else [])]))


@dataclass(frozen=True, slots=True)
class SnapshotProblem:
    """One thing that is wrong with the manifests together; `code` for the contract checks of D4.

    `missing` is the tool that is named and does not exist, where that is what is wrong.
    """

    source: str
    tool: str
    path: str
    message: str
    code: str | None = None
    missing: str | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The manifests by tool name."""

    entries: Mapping[str, Entry] = field(default_factory=dict)

    def get(self, tool: str) -> Entry | None:
        """Return the tool's entry."""
        return self.entries.get(tool)

    def involved(self, entry: Entry) -> tuple[Entry, ...]:
        """Return the entry and those of its follow-ups, each once."""
        tools = dict.fromkeys([entry.manifest.tool, *entry.follow_ups])
        return tuple(self.entries[tool] for tool in tools if tool in self.entries)


def build_snapshot(
    entries: Iterable[Entry], *, malformed: Collection[str] = ()
) -> tuple[Snapshot, tuple[SnapshotProblem, ...]]:
    """Put manifests together; with problems the snapshot must not be enforced.

    `malformed` names tools whose own manifest is not valid: that is told already, so they do not count as missing.
    """
    by_tool: dict[str, Entry] = {}
    problems: list[SnapshotProblem] = []
    for entry in entries:
        first = by_tool.setdefault(entry.manifest.tool, entry)
        if first is not entry:
            message = f"duplicate tool name: already declared at {first.source}"
            problems.append(SnapshotProblem(entry.source, entry.manifest.tool, "tool", message))
    for entry in by_tool.values():
        problems.extend(each for each in _problems(entry, by_tool) if each.missing not in malformed)
    return Snapshot(by_tool), tuple(problems)


def _problems(entry: Entry, by_tool: Mapping[str, Entry]) -> Iterator[SnapshotProblem]:
    for place in places_of(entry.normalized):
        yield from _place_problems(entry, place, by_tool)
    yield from _before_problems(entry, by_tool)
    for number, tool in enumerate(entry.manifest.requires):
        if tool not in by_tool:
            yield _missing(entry, f"requires[{number}].tool", "required", tool)
    replacement = entry.manifest.replaced_by
    if replacement is not None and replacement not in by_tool:
        yield _missing(entry, "replaced_by", "replacement", replacement)


def _place_problems(entry: Entry, place: Place, by_tool: Mapping[str, Entry]) -> Iterator[SnapshotProblem]:
    tool = str(place.data[place.tool_field])
    path = path_text((*place.path, place.tool_field))
    target = by_tool.get(tool)
    is_block = is_contract(entry.normalized)
    if target is None:
        code = "effect/operation_missing" if is_block else None
        yield _missing(entry, path, _role(place), tool, code)
        return
    is_read = target.manifest.effect is Effect.READ_ONLY
    if place.part in _READS and not is_read:
        code = "effect/lookup_not_read" if is_block and place.part is Part.LOOKUP else None
        yield _problem(entry, path, f"{_READS[place.part]} tool must be read_only, and {tool} is not", code)
    if is_block and place.part in _CHANGES and is_read:
        yield _problem(entry, path, f"{tool} only reads: it cannot be the {_role(place)}", "effect/follow_up_is_read")
    yield from _control_problems(entry, place, target)


def _role(place: Place) -> str:
    return str(place.path[-1]).replace("_", " ")


def _control_problems(entry: Entry, place: Place, target: Entry) -> Iterator[SnapshotProblem]:
    carrier = target.manifest.key_carrier
    name = carrier.argument if carrier is not None else None
    if name is None or place.part is Part.DRAFT or not is_contract(entry.normalized):
        return
    if name in place.data.get(place.map_field, {}):
        path = path_text((*place.path, place.map_field, name))
        message = f"{name} carries the idempotency key of {target.manifest.tool}: it is filled when the call is made"
        yield _problem(entry, path, message, "effect/mapping_sets_safety_control")


def _before_problems(entry: Entry, by_tool: Mapping[str, Entry]) -> Iterator[SnapshotProblem]:
    before = entry.manifest.before
    if before is None:
        return
    target = by_tool.get(before.tool)
    if target is None:
        yield _missing(entry, "before.tool", "before", before.tool)
    elif target.manifest.effect is not Effect.READ_ONLY:
        yield _problem(entry, "before.tool", f"a before tool must be read_only, and {before.tool} is not")


def _missing(entry: Entry, path: str, role: str, tool: str, code: str | None = None) -> SnapshotProblem:
    message = f"no manifest for {role} tool {tool}"
    return SnapshotProblem(entry.source, entry.manifest.tool, path, message, code, missing=tool)


def _problem(entry: Entry, path: str, message: str, code: str | None = None) -> SnapshotProblem:
    return SnapshotProblem(entry.source, entry.manifest.tool, path, message, code)
