"""JSON as strictly as YAML: no key twice, no NaN, no lone surrogate, and every value knows its line and column."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any, Final

from reversi_sdk.canonical import is_scalar_text
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
)

_BLANK: Final = re.compile(r"[ \t\r\n]*")
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORD: Final = re.compile(r"true|false|null")
_WORDS: Final = {"true": True, "false": False, "null": None}
_LINE_END: Final = re.compile(r"\r\n|\r|\n")


class JsonInvalid(DocumentInvalid):
    """A file is no strict JSON."""


def load_json(data: bytes, *, name: str) -> Document:
    """Parse one JSON document; raises JsonInvalid."""
    text = decode(data, name=name, error=JsonInvalid)
    reader = _Reader(name=name, text=text)
    root = reader.value(depth=0)
    reader.blank()
    if reader.at < len(text):
        raise reader.error("something follows the end of the document")
    return Document(root)


@dataclass(slots=True)
class _Reader:
    name: str
    text: str
    at: int = 0
    lines: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.lines = [0, *(found.end() for found in _LINE_END.finditer(self.text))]

    def place(self, at: int) -> tuple[int, int]:
        line = bisect_right(self.lines, at)
        return line, at - self.lines[line - 1] + 1

    def error(self, problem: str, at: int | None = None) -> JsonInvalid:
        line, column = self.place(self.at if at is None else at)
        return JsonInvalid(name=self.name, line=line, column=column, problem=problem)

    def blank(self) -> None:
        found = _BLANK.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def takes(self, character: str) -> bool:
        self.blank()
        if not self.text.startswith(character, self.at):
            return False
        self.at += 1
        return True

    def value(self, depth: int) -> Placed:
        self.blank()
        line, column = self.place(self.at)
        placed = Placed(None, line, column)
        character = self.text[self.at : self.at + 1]
        if character in ("{", "[") and depth >= MAX_DEPTH:
            raise self.error(TOO_DEEP)
        match character:
            case "{":
                self.object(placed, depth)
            case "[":
                self.array(placed, depth)
            case '"':
                placed.value = self.string()
            case _:
                placed.value = self.plain()
        return placed

    def object(self, placed: Placed, depth: int) -> None:
        placed.value = {}
        self.at += 1
        if self.takes("}"):
            return
        while True:
            self.member(placed, depth)
            if self.takes("}"):
                return
            if not self.takes(","):
                raise self.error("expected , or }")

    def member(self, placed: Placed, depth: int) -> None:
        self.blank()
        start = self.at
        if not self.text.startswith('"', start):
            raise self.error("expected a key in double quotes")
        key = self.string()
        if key in placed.value:
            raise self.error(f"the key {key[:80]!r} is written twice", start)
        if not self.takes(":"):
            raise self.error("expected :")
        member = self.value(depth + 1)
        placed.value[key] = member.value
        member.line, member.column = self.place(start)
        placed.members[key] = member

    def array(self, placed: Placed, depth: int) -> None:
        placed.value = []
        self.at += 1
        if self.takes("]"):
            return
        while True:
            item = self.value(depth + 1)
            placed.members[len(placed.value)] = item
            placed.value.append(item.value)
            if self.takes("]"):
                return
            if not self.takes(","):
                raise self.error("expected , or ]")

    def string(self) -> str:
        found = _STRING.match(self.text, self.at)
        if found is None:
            raise self.error("a text does not end, or holds a control character or an unknown escape")
        text: str = json.loads(found.group())
        if "\0" in text:
            raise self.error("a text holds a NUL character")
        if not is_scalar_text(text):
            raise self.error("a text holds a lone surrogate")
        self.at = found.end()
        return text

    def plain(self) -> Any:
        found = _WORD.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
            return _WORDS[found.group()]
        number = _NUMBER.match(self.text, self.at)
        if number is None:
            raise self.error("expected a value")
        value = self.number(number)
        self.at = number.end()
        return value

    def number(self, found: re.Match[str]) -> int | float:
        if len(found.group()) > MAX_NUMBER_LENGTH:
            raise self.error(TOO_LONG_NUMBER)
        if found.group(1) is None and found.group(2) is None:
            return int(found.group())
        value = float(found.group())
        if not math.isfinite(value):
            raise self.error(NOT_FINITE)
        return value
