"""YAML 1.2, core schema, one document, read strictly (D1).

Only true and false are booleans; there are no dates, no sexagesimals, no merge keys and no tags beyond texts, lists
and objects. Keys are texts and stand once. Aliases are allowed as long as what they repeat stays small; an alias
inside its own anchor is refused. The document is built from parser events, without recursion, so that neither depth
nor repetition can exhaust the process before it is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from reversi_sdk.documents import (
    MAX_DEPTH,
    MAX_NUMBER_LENGTH,
    NOT_FINITE,
    TOO_DEEP,
    TOO_LONG_NUMBER,
    Document,
    DocumentInvalid,
    Placed,
    decode,
    position_in,
)

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# How many values aliases may repeat in one document.
_MAX_REPEATED: Final = 10_000
_TAGS: Final = {
    yaml.ScalarEvent: "tag:yaml.org,2002:str",
    yaml.SequenceStartEvent: "tag:yaml.org,2002:seq",
    yaml.MappingStartEvent: "tag:yaml.org,2002:map",
}
_NULLS: Final = frozenset(("", "~", "null", "Null", "NULL"))
_BOOLEANS: Final = {
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_INTEGER: Final = re.compile(r"[-+]?[0-9]+")
_OCTAL: Final = re.compile(r"0o[0-7]+")
_HEXADECIMAL: Final = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


class YamlInvalid(DocumentInvalid):
    """A file is no strict YAML."""


def load_yaml(data: bytes, *, name: str) -> Document:
    """Parse one YAML document; an empty one says null. Raises YamlInvalid."""
    text = decode(data, name=name, error=YamlInvalid)
    builder = _Builder(name)
    for event in _events(text, name):
        builder.take(event)
    return Document(builder.root or Placed(None, 1, 1))


def _events(text: str, name: str) -> Iterator[Any]:
    try:
        yield from yaml.parse(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # The parser may place the unexpected end on a line that the file does not have.
        place = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        line, column = min(place, position_in(text))
        problem = error.problem or error.context or "is no YAML"
        raise YamlInvalid(name=name, line=line, column=column, problem=str(problem)) from None
    except yaml.reader.ReaderError as error:
        line, column = _reader_place(text, error.position)
        raise YamlInvalid(name=name, line=line, column=column, problem=str(error.reason)) from None


def _reader_place(text: str, position: int) -> tuple[int, int]:
    # The compiled reader counts bytes, the other characters; the first one not allowed is what both mean.
    found = re.search(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]", text)
    return position_in(text[: found.start() if found else position])


@dataclass(slots=True)
class _Open:
    """A collection whose end has not come."""

    placed: Placed
    anchor: str | None
    key: str | None = None
    key_place: tuple[int, int] = (0, 0)
    size: int = 1
    height: int = 1


@dataclass(frozen=True, slots=True)
class _Anchored:
    """What an alias repeats, how many values that is, and how deep."""

    placed: Placed
    size: int
    height: int


@dataclass(slots=True)
class _Builder:
    name: str
    root: Placed | None = None
    documents: int = 0
    repeated: int = 0
    stack: list[_Open] = field(default_factory=list)
    anchors: dict[str, _Anchored | None] = field(default_factory=dict)

    def error(self, event: Any, problem: str) -> YamlInvalid:
        mark = event.start_mark
        return YamlInvalid(name=self.name, line=mark.line + 1, column=mark.column + 1, problem=problem)

    def take(self, event: Any) -> None:
        match event:
            case yaml.DocumentStartEvent():
                self.documents += 1
                if self.documents > 1:
                    raise self.error(event, "holds more than one document")
            case yaml.ScalarEvent():
                self.scalar(event)
            case yaml.AliasEvent():
                self.alias(event)
            case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                self.open(event)
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                self.close(event)
            case _:
                # The ends of stream and document say nothing.
                return

    def scalar(self, event: Any) -> None:
        if "\0" in event.value:
            raise self.error(event, "a text holds a NUL character")
        value = self.resolved(event)
        placed = Placed(value, event.start_mark.line + 1, event.start_mark.column + 1)
        if self.is_key():
            self.key(event, value)
            return
        if event.anchor is not None:
            self.anchors[event.anchor] = _Anchored(placed, 1, 0)
        self.attach(event, placed, size=1, height=0)

    def is_key(self) -> bool:
        return bool(self.stack) and isinstance(self.stack[-1].placed.value, dict) and self.stack[-1].key is None

    def key(self, event: Any, value: Any) -> None:
        top = self.stack[-1]
        if not isinstance(value, str):
            raise self.error(event, f"a key must be a text; write it in quotes: {event.value[:80]!r}")
        if value in top.placed.value:
            raise self.error(event, f"the key {value[:80]!r} is written twice")
        if event.anchor is not None:
            raise self.error(event, "a key cannot be an anchor")
        top.key = value
        top.key_place = (event.start_mark.line + 1, event.start_mark.column + 1)

    def open(self, event: Any) -> None:
        self.check_tag(event)
        if self.is_key():
            raise self.error(event, "a key must be a text")
        if len(self.stack) >= MAX_DEPTH:
            raise self.error(event, TOO_DEEP)
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        value: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
        placed = Placed(value, event.start_mark.line + 1, event.start_mark.column + 1)
        self.stack.append(_Open(placed, event.anchor))

    def close(self, event: Any) -> None:
        done = self.stack.pop()
        if done.anchor is not None:
            self.anchors[done.anchor] = _Anchored(done.placed, done.size, done.height)
        self.attach(event, done.placed, size=done.size, height=done.height)

    def alias(self, event: Any) -> None:
        if self.is_key():
            raise self.error(event, "a key cannot be an alias")
        if event.anchor not in self.anchors:
            raise self.error(event, f"the alias *{event.anchor[:80]} has no anchor before it")
        anchored = self.anchors[event.anchor]
        if anchored is None:
            raise self.error(event, f"the alias *{event.anchor[:80]} stands inside its own anchor")
        self.repeated += anchored.size
        if self.repeated > _MAX_REPEATED:
            raise self.error(event, f"aliases repeat more than {_MAX_REPEATED} values")
        if len(self.stack) + anchored.height > MAX_DEPTH:
            raise self.error(event, TOO_DEEP)
        place = (event.start_mark.line + 1, event.start_mark.column + 1)
        copy = Placed(_copied(anchored.placed.value), *place, anchored.placed.members)
        self.attach(event, copy, size=anchored.size, height=anchored.height)

    def attach(self, event: Any, placed: Placed, *, size: int, height: int) -> None:
        if not self.stack:
            self.root = placed
            return
        top = self.stack[-1]
        top.size += size
        top.height = max(top.height, height + 1)
        if isinstance(top.placed.value, list):
            top.placed.members[len(top.placed.value)] = placed
            top.placed.value.append(placed.value)
            return
        name = top.key or ""
        top.placed.value[name] = placed.value
        top.placed.members[name] = Placed(placed.value, *top.key_place, placed.members)
        top.key = None

    def check_tag(self, event: Any) -> None:
        if event.tag is not None and event.tag not in ("!", _TAGS[type(event)]):
            raise self.error(event, f"the tag {event.tag[:80]} is not allowed")

    def resolved(self, event: Any) -> Any:
        self.check_tag(event)
        is_plain = event.tag is None and event.implicit[0]
        if not is_plain:
            return event.value
        if _NOT_FINITE.fullmatch(event.value):
            raise self.error(event, NOT_FINITE)
        try:
            return _core_value(event.value)
        except ValueError as error:
            raise self.error(event, str(error)) from None


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(member) for key, member in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _core_value(text: str) -> Any:
    """Resolve a plain scalar by the core schema; raises ValueError for a number that nothing can hold."""
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    base = next((base for base, pattern in _BASES.items() if pattern.fullmatch(text)), None)
    if base is None and not _FLOAT.fullmatch(text):
        return text
    if len(text) > MAX_NUMBER_LENGTH:
        raise ValueError(TOO_LONG_NUMBER)
    if base is not None:
        return int(text, base)
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(NOT_FINITE)
    return number


_BASES: Final = {10: _INTEGER, 8: _OCTAL, 16: _HEXADECIMAL}
