"""Undos that suggest themselves: a pair of names, a move that goes back, an old value that can be read and written.

A proposal stands in comments only. It is a guess from names and schemas; whether it holds a person must find out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from manifests_registry.core.drafting.effects import Judgement
from manifests_registry.core.drafting.names import LOOKING, OVERWRITING, UNDOING, Key, NameWords, words_of
from manifests_registry.core.drafting.offers import OfferedTool, is_plain

# The two ends of a move; both are inputs, and the way back is the same call with the two exchanged.
ENDS = (
    ("source", "destination"),
    ("src", "dst"),
    ("from", "to"),
    ("from_path", "to_path"),
    ("old_path", "new_path"),
    ("oldPath", "newPath"),
    ("old_name", "new_name"),
    ("oldName", "newName"),
)
MOVING = frozenset({"move", "rename"})
# What an executor fills by itself; no map may name it (D41).
_FILLED = frozenset({"confirm", "idempotency_key"})
UNKNOWN = "FILL_IN"


@dataclass(frozen=True, slots=True)
class Proposal:
    """An undo that may be one: the tool that would do it, why it seems so, and the fields of the manifest as YAML."""

    tool: str
    reason: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Argument:
    name: str
    source: str
    remark: str = ""

    @property
    def line(self) -> str:
        return f"{self.name}: {self.source}" + (f" # {self.remark}" if self.remark else "")


class Proposer:
    """Knows all tools of one server, to find which of them belong together."""

    def __init__(self, tools: Sequence[OfferedTool], judgements: Mapping[str, Judgement]) -> None:
        self._judgements = judgements
        self._by_key: dict[Key, OfferedTool] = {}
        for tool in tools:
            self._by_key.setdefault(words_of(tool.name).key, tool)

    def propose(self, tool: OfferedTool) -> Proposal | None:
        """Return the most obvious undo of a tool that changes something, if any is obvious."""
        if self._judgements[tool.name].is_reading:
            return None
        found = (self._pair(tool), _way_back(tool), self._old_value(tool))
        return next((proposal for proposal in found if proposal is not None), None)

    def _find(self, names: Iterator[NameWords], *, is_reading: bool) -> OfferedTool | None:
        tools = (self._by_key.get(name.key) for name in names)
        return next((tool for tool in tools if tool and self._judgements[tool.name].is_reading is is_reading), None)

    def _pair(self, tool: OfferedTool) -> Proposal | None:
        undo = self._find(_counterparts(words_of(tool.name)), is_reading=False)
        if undo is None:
            return None
        arguments = _undo_arguments(tool, undo)
        if not arguments:
            return None
        lines = ("effect: reversible", *_compensation(undo.name, arguments))
        return Proposal(undo.name, f"{undo.name} looks like its undo (guessed from the names)", lines)

    def _old_value(self, tool: OfferedTool) -> Proposal | None:
        reader = self._find(_readers(words_of(tool.name)), is_reading=True)
        if reader is None:
            return None
        asked = [name for name in reader.required if _is_shared(name, tool, reader)]
        restored = [name for name in tool.required if name not in asked]
        if not asked or len(asked) < len(reader.required) or not _can_restore(restored, tool, reader):
            return None
        keys = [_Argument(name, f"$args.{name}") for name in asked]
        values = [_Argument(name, f"$before.{name}", _unlisted(name, reader)) for name in restored]
        lines = (
            "effect: reversible",
            "before:",
            f"  tool: {reader.name}",
            "  arguments:",
            *(f"    {argument.line}" for argument in keys),
            *_compensation(tool.name, [*keys, *values], is_self_inverse=True),
        )
        reason = f"{reader.name} seems to read what this overwrites (guessed from names and schemas)"
        return Proposal(tool.name, reason, lines)


def _counterparts(name: NameWords) -> Iterator[NameWords]:
    for index, word in enumerate(name.words):
        for verb in UNDOING.get(word, ()):
            yield name.with_verb(index, verb)


def _readers(name: NameWords) -> Iterator[NameWords]:
    for index, word in enumerate(name.words):
        if word in OVERWRITING:
            yield from (name.with_verb(index, verb) for verb in LOOKING)


def _way_back(tool: OfferedTool) -> Proposal | None:
    inputs = tool.inputs or {}
    ends = next((pair for pair in ENDS if set(pair) <= inputs.keys()), None)
    if ends is None or not MOVING.intersection(words_of(tool.name).words):
        return None
    others = [name for name in tool.required if name not in ends]
    if not all(is_plain(name) and name not in _FILLED for name in others):
        return None
    exchanged = (_Argument(ends[0], f"$args.{ends[1]}"), _Argument(ends[1], f"$args.{ends[0]}"))
    arguments = [*exchanged, *(_Argument(name, f"$args.{name}") for name in others)]
    lines = ("effect: reversible", *_compensation(tool.name, arguments, is_self_inverse=True))
    reason = f"{tool.name} with {ends[0]} and {ends[1]} exchanged looks like its undo (guessed from its arguments)"
    return Proposal(tool.name, reason, lines)


def _compensation(tool: str, arguments: Sequence[_Argument], *, is_self_inverse: bool = False) -> Iterator[str]:
    yield "compensation:"
    yield f"  tool: {tool}"
    if is_self_inverse:
        yield "  self_inverse: true"
    yield "  argument_map:"
    yield from (f"    {argument.line}" for argument in arguments)


def _undo_arguments(tool: OfferedTool, undo: OfferedTool) -> Sequence[_Argument]:
    """Map what the undo requires; where it requires nothing, what both tools call alike."""
    wanted = undo.required or tuple(name for name in undo.inputs or {} if name in (tool.inputs or {}))
    if not all(is_plain(name) for name in wanted):
        return ()
    return [_undo_argument(name, tool, undo) for name in wanted if name not in _FILLED]


def _undo_argument(name: str, tool: OfferedTool, undo: OfferedTool) -> _Argument:
    kind = _kind(name, undo.inputs)
    if name in (tool.outputs or {}) and _fits(kind, _kind(name, tool.outputs)):
        return _Argument(name, f"$result.{name}", "the answer names it")
    if name in (tool.inputs or {}) and _fits(kind, _kind(name, tool.inputs)):
        return _Argument(name, f"$args.{name}")
    if name.lower().endswith("id") and (tool.outputs is None or "id" in tool.outputs):
        return _Argument(name, "$result.id", "" if tool.outputs else "guessed: the answer has no declared form")
    return _Argument(name, UNKNOWN, "nothing obvious supplies it; a reference such as $args.… or $result.…")


def _can_restore(names: Sequence[str], tool: OfferedTool, reader: OfferedTool) -> bool:
    """Tell whether everything else that a write requires may stand in what the read answered."""
    if not names or not all(is_plain(name) and name not in _FILLED for name in names):
        return False
    if reader.outputs is None:
        return True
    outputs = reader.outputs
    return all(name in outputs and _fits(_kind(name, tool.inputs), _kind(name, outputs)) for name in names)


def _unlisted(name: str, reader: OfferedTool) -> str:
    return "" if name in (reader.outputs or {}) else "guessed: the answer has no declared form"


def _is_shared(name: str, tool: OfferedTool, reader: OfferedTool) -> bool:
    return name in (tool.inputs or {}) and _fits(_kind(name, reader.inputs), _kind(name, tool.inputs))


def _kind(name: str, members: Mapping[str, Mapping[str, Any]] | None) -> object:
    return (members or {}).get(name, {}).get("type")


def _fits(wanted: object, given: object) -> bool:
    return wanted is None or given is None or wanted == given
