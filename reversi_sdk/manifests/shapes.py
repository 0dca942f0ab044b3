"""A small language of shapes: each reads one kind of value into its normal form and knows its JSON Schema.

A reader notes every problem in the report and never stops at the first; what it cannot read is INVALID and left
out of the normal form, so that the rules which look at several fields see only what is sound.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Protocol

from reversi_sdk.canonical import Path
from reversi_sdk.durations import DURATION_PATTERN, MAX_MS, DurationInvalid, format_duration, parse_duration
from reversi_sdk.manifests.report import Report


class Mark(Enum):
    """Values that no document can hold."""

    INVALID = "invalid"
    ABSENT = "absent"


INVALID: Final = Mark.INVALID
ABSENT: Final = Mark.ABSENT

Schema = dict[str, Any]


class Shape(Protocol):
    """What a field may hold."""

    def read(self, value: Any, path: Path, report: Report) -> Any:
        """Give the normal form of a value, or INVALID after noting why."""

    def schema(self) -> Schema:
        """Describe the accepted values as JSON Schema."""


def kind_of(value: Any) -> str:
    """Name the kind of a value for a message."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return type(value).__name__


def whole(pattern: str) -> str:
    """Anchor a pattern for a JSON Schema; in some engines a plain `$` would let a final newline pass."""
    return rf"^(?:{pattern})(?![\s\S])"


@dataclass(frozen=True, slots=True)
class Text:
    """A text; `pattern` must match all of it, and `rule` says so in words."""

    pattern: str | None = None
    rule: str = ""
    code: str | None = None

    def read(self, value: Any, path: Path, report: Report) -> Any:
        if not isinstance(value, str):
            report.add(path, f"must be a text, not {kind_of(value)}", self.code)
            return INVALID
        if self.pattern is not None and not re.fullmatch(self.pattern, value):
            report.add(path, self.rule, self.code)
            return INVALID
        return value

    def schema(self) -> Schema:
        return {"type": "string"} | ({"pattern": whole(self.pattern)} if self.pattern is not None else {})


@dataclass(frozen=True, slots=True)
class Word:
    """One of a few words."""

    words: tuple[str, ...]

    def read(self, value: Any, path: Path, report: Report) -> Any:
        if isinstance(value, str) and value in self.words:
            return value
        report.add(path, f"must be {_one_of(self.words)}{report.hint(value, self.words)}")
        return INVALID

    def schema(self) -> Schema:
        return {"enum": list(self.words)}


def _one_of(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false; with `only_true`, there is nothing to say but yes."""

    only_true: bool = False

    def read(self, value: Any, path: Path, report: Report) -> Any:
        if value is True or (value is False and not self.only_true):
            return value
        report.add(path, "must be true" if self.only_true else f"must be true or false, not {kind_of(value)}")
        return INVALID

    def schema(self) -> Schema:
        return {"const": True} if self.only_true else {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number within bounds."""

    least: int
    most: int

    def read(self, value: Any, path: Path, report: Report) -> Any:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            report.add(path, f"must be a whole number, not {kind_of(value)}")
        elif isinstance(value, float) and not value.is_integer():
            report.add(path, "must be a whole number")
        elif not self.least <= value <= self.most:
            report.add(path, f"must be from {self.least} to {self.most}")
        else:
            return int(value)
        return INVALID

    def schema(self) -> Schema:
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True, slots=True)
class Span:
    """A duration, kept in milliseconds."""

    least_ms: int = 0

    def read(self, value: Any, path: Path, report: Report) -> Any:
        try:
            span = parse_duration(value)
        except DurationInvalid as error:
            report.add(path, str(error))
            return INVALID
        if span < self.least_ms:
            report.add(path, f"must be at least {format_duration(self.least_ms)}")
            return INVALID
        return span

    def schema(self) -> Schema:
        number = {"type": "integer", "minimum": self.least_ms, "maximum": MAX_MS}
        return {"anyOf": [number, {"type": "string", "pattern": whole(DURATION_PATTERN)}]}


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of one shape, without repetitions."""

    item: Shape
    least: int = 0
    most: int = 1000

    def read(self, value: Any, path: Path, report: Report) -> Any:
        if not isinstance(value, list):
            report.add(path, f"must be a list, not {kind_of(value)}")
            return INVALID
        if len(value) > self.most:
            report.add(path, f"must list at most {self.most}")
            return INVALID
        if len(value) < self.least:
            report.add(path, f"must list at least {self.least}")
        items: list[Any] = []
        for number, item in enumerate(value):
            read = self.item.read(item, (*path, number), report)
            if read is not INVALID and read in items:
                report.add((*path, number), "is listed twice")
            items.append(read)
        return items

    def schema(self) -> Schema:
        return {"type": "array", "items": self.item.schema(), "uniqueItems": True} | (
            {"minItems": self.least} if self.least else {}
        )


@dataclass(frozen=True, slots=True)
class OneOrMany:
    """A list, or one item that stands for a list of one."""

    many: ListOf

    def read(self, value: Any, path: Path, report: Report) -> Any:
        if isinstance(value, list):
            return self.many.read(value, path, report)
        item = self.many.item.read(value, path, report)
        return INVALID if item is INVALID else [item]

    def schema(self) -> Schema:
        return {"anyOf": [self.many.item.schema(), self.many.schema()]}


@dataclass(frozen=True, slots=True)
class Free:
    """Any JSON value, copied."""

    def read(self, value: Any, path: Path, report: Report) -> Any:
        return copied(value)

    def schema(self) -> Schema:
        return {}


def copied(value: Any) -> Any:
    """Copy a JSON value into plain dicts and lists; what is no JSON value stays for the report to name."""
    match value:
        case dict():
            return {key: copied(member) for key, member in value.items()}
        case list() | tuple():
            return [copied(item) for item in value]
        case _:
            return value


@dataclass(frozen=True, slots=True)
class Field:
    """One field of an object.

    `default` is written when the field is absent; `omitted` is a value so usual that it is not written; `alias` is
    another spelling that is read and not kept; `code` marks the problem of its absence.
    """

    shape: Shape
    about: str
    is_required: bool = False
    default: Any = ABSENT
    omitted: Any = ABSENT
    alias: str | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Fields:
    """An object of known fields; any other is refused. `title` names it in the JSON Schema."""

    fields: Mapping[str, Field]
    title: str = ""
    needs_one_of: tuple[str, ...] = ()
    one_of_code: str | None = None
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        aliases = tuple(item.alias for item in self.fields.values() if item.alias)
        object.__setattr__(self, "names", (*self.fields, *aliases))

    def read(self, value: Any, path: Path, report: Report) -> Any:
        if not isinstance(value, dict):
            report.add(path, f"must be an object, not {kind_of(value)}")
            return INVALID
        for key in value:
            if isinstance(key, str) and key not in self.names:
                report.add((*path, key), f"unknown field{report.hint(key, self.names)}")
        self._count_alternatives(value, path, report)
        read = {name: self._member(name, item, value, path, report) for name, item in self.fields.items()}
        return {name: item for name, item in read.items() if not isinstance(item, Mark)}

    def _count_alternatives(self, value: dict[Any, Any], path: Path, report: Report) -> None:
        given = sum(name in value for name in self.needs_one_of)
        if self.needs_one_of and given != 1:
            problem = "both are given" if given else "neither is given"
            report.add(path, f"needs either {' or '.join(self.needs_one_of)}; {problem}", self.one_of_code)

    def _member(self, name: str, item: Field, value: dict[Any, Any], path: Path, report: Report) -> Any:
        if item.alias is not None and item.alias in value:
            if name in value:
                report.add((*path, item.alias), f"stands beside {name}; write one of them", item.code)
                return INVALID
            name = item.alias
        if name not in value:
            if item.is_required:
                report.add((*path, name), "is required", item.code)
            return copied(item.default)
        read = item.shape.read(value[name], (*path, name), report)
        return ABSENT if read == item.omitted else read

    def schema(self) -> Schema:
        properties = {name: self._described(item) for name, item in self.fields.items()}
        properties |= {item.alias: properties[name] for name, item in self.fields.items() if item.alias}
        required = [name for name, item in self.fields.items() if item.is_required and not item.alias]
        schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
        schema |= {"title": self.title} if self.title else {}
        schema |= {"required": required} if required else {}
        choices = [self.needs_one_of] if self.needs_one_of else []
        choices += [(name, item.alias) for name, item in self.fields.items() if item.alias and item.is_required]
        return schema | ({"allOf": [_exactly_one(names) for names in choices]} if choices else {})

    def _described(self, item: Field) -> Schema:
        default = {} if item.default is ABSENT else {"default": copied(item.default)}
        return item.shape.schema() | {"description": item.about} | default


def _exactly_one(names: tuple[str, ...]) -> Schema:
    return {"oneOf": [{"required": [name]} for name in names]}


@dataclass(frozen=True, slots=True)
class Either:
    """A plain value, or an object."""

    plain: Shape
    fields: Fields

    def read(self, value: Any, path: Path, report: Report) -> Any:
        return (self.fields if isinstance(value, dict) else self.plain).read(value, path, report)

    def schema(self) -> Schema:
        return {"anyOf": [self.plain.schema(), self.fields.schema()]}


@dataclass(frozen=True, slots=True)
class Requirement:
    """A tool that must have succeeded: its name, or an object with its status."""

    fields: Fields

    def read(self, value: Any, path: Path, report: Report) -> Any:
        if isinstance(value, dict):
            return self.fields.read(value, path, report)
        name = self.fields.fields["tool"].shape.read(value, path, report)
        return INVALID if name is INVALID else self.fields.read({"tool": name}, path, report)

    def schema(self) -> Schema:
        return {"anyOf": [self.fields.fields["tool"].shape.schema(), self.fields.schema()]}
