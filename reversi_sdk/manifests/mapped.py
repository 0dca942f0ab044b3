"""Shapes of what refers to a call: argument maps, expectations, single references, paths and templates."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reversi_sdk.canonical import Path
from reversi_sdk.manifests.report import Report
from reversi_sdk.manifests.shapes import INVALID, Schema, copied, kind_of
from reversi_sdk.references import (
    MapProblem,
    ReferenceInvalid,
    Root,
    RootNotAllowed,
    Spelling,
    parse_path,
    parse_reference,
    read_expected_value,
    read_map_value,
    spelling_of,
)
from reversi_sdk.templates import TemplateInvalid, parse_template

PATH_INVALID = "effect/path_invalid"
ROOT_NOT_ALLOWED = "effect/path_root_not_allowed"


def code_of(error: ReferenceInvalid) -> str:
    """The contract check that a bad reference fails."""
    return ROOT_NOT_ALLOWED if isinstance(error, RootNotAllowed) else PATH_INVALID


@dataclass(frozen=True, slots=True)
class ArgumentMap:
    """Names of arguments and where their values come from; `is_mixed` accepts the flat spelling beside the other."""

    spelling: Spelling
    roots: tuple[Root, ...]
    is_mixed: bool = False

    def read(self, value: Any, path: Path, report: Report) -> Any:
        if not isinstance(value, dict):
            report.add(path, f"must be an object of arguments, not {kind_of(value)}")
            return INVALID
        for name, source in texts(value):
            self._check(source, (*path, name), report)
            if name == "":
                report.add((*path, name), "an argument needs a name")
        return copied(value)

    def _check(self, source: Any, path: Path, report: Report) -> None:
        spelling = spelling_of(source, default=self.spelling) if self.is_mixed else self.spelling
        _, problems = read_map_value(source, spelling=spelling, roots=self.roots)
        note(problems, path, report)

    def schema(self) -> Schema:
        names = [Spelling.FLAT, Spelling.CONTRACT] if self.is_mixed else [self.spelling]
        values = [{"$ref": f"#/$defs/{spelling.value}_value"} for spelling in names]
        value: Schema = values[0] if len(values) == 1 else {"anyOf": values}
        return {"type": "object", "additionalProperties": value, "propertyNames": {"minLength": 1}}


def texts(value: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """The members whose names are texts; any other key is a flaw that is noted elsewhere."""
    return ((name, member) for name, member in value.items() if isinstance(name, str))


def note(problems: tuple[MapProblem, ...], path: Path, report: Report) -> None:
    """Report what is wrong inside a map value."""
    for problem in problems:
        report.add((*path, *problem.path), problem.error.problem, code_of(problem.error))


@dataclass(frozen=True, slots=True)
class Expectations:
    """What a read-back must find: paths of the answer and their values."""

    spelling: Spelling
    roots: tuple[Root, ...]

    def read(self, value: Any, path: Path, report: Report) -> Any:
        if not isinstance(value, dict):
            report.add(path, f"must be an object of paths and values, not {kind_of(value)}")
            return INVALID
        if not value:
            report.add(path, "needs at least one entry")
        for name, expected in texts(value):
            _check_path(name, (*path, name), report)
            _, problems = read_expected_value(expected, spelling=self.spelling, roots=self.roots)
            note(problems, (*path, name), report)
        return copied(value)

    def schema(self) -> Schema:
        return {"type": "object", "minProperties": 1}


def _check_path(text: str, path: Path, report: Report) -> bool:
    try:
        parse_path(text)
    except ReferenceInvalid as error:
        report.add(path, error.problem)
        return False
    return True


@dataclass(frozen=True, slots=True)
class AnswerPath:
    """A dotted path into an answer."""

    def read(self, value: Any, path: Path, report: Report) -> Any:
        if not isinstance(value, str):
            report.add(path, f"must be a text, not {kind_of(value)}")
            return INVALID
        return value if _check_path(value, path, report) else INVALID

    def schema(self) -> Schema:
        return {"type": "string", "minLength": 1}


@dataclass(frozen=True, slots=True)
class ReferenceText:
    """One required reference; `code` is the contract check that anything else fails."""

    spelling: Spelling
    roots: tuple[Root, ...]
    code: str | None = None
    is_mixed: bool = False

    def read(self, value: Any, path: Path, report: Report) -> Any:
        if not isinstance(value, str):
            report.add(path, f"must be a reference, not {kind_of(value)}", self.code)
            return INVALID
        spelling = spelling_of(value, default=self.spelling) if self.is_mixed else self.spelling
        try:
            reference = parse_reference(value, spelling=spelling, roots=self.roots)
        except ReferenceInvalid as error:
            report.add(path, error.problem, self.code)
            return INVALID
        if reference.is_optional:
            report.add(path, "cannot be optional: leave out the ?", self.code)
            return INVALID
        return value

    def schema(self) -> Schema:
        return {"type": "string", "minLength": 1}


@dataclass(frozen=True, slots=True)
class TemplateText:
    """A template over the call; `needs_field` refuses a text that is the same for every call."""

    roots: Collection[str]
    needs_field: bool = False

    def read(self, value: Any, path: Path, report: Report) -> Any:
        if not isinstance(value, str):
            report.add(path, f"must be a text, not {kind_of(value)}")
            return INVALID
        try:
            template = parse_template(value, roots=frozenset(self.roots))
        except TemplateInvalid as error:
            report.add(path, str(error))
            return INVALID
        if self.needs_field and not template.references:
            report.add(path, "needs at least one {{args.field}}")
            return INVALID
        if not value:
            report.add(path, "cannot be empty")
            return INVALID
        return value

    def schema(self) -> Schema:
        return {"type": "string", "minLength": 1}


@dataclass(frozen=True, slots=True)
class ChosenItems:
    """Paths of lists in an answer, and the list whose items are the ones that count."""

    spelling: Spelling
    roots: tuple[Root, ...]
    is_mixed: bool = False

    def read(self, value: Any, path: Path, report: Report) -> Any:
        if not isinstance(value, dict):
            report.add(path, f"must be an object of paths and references, not {kind_of(value)}")
            return INVALID
        if not value:
            report.add(path, "needs at least one entry")
        reference = ReferenceText(self.spelling, self.roots, PATH_INVALID, self.is_mixed)
        for name, source in texts(value):
            _check_path(name, (*path, name), report)
            reference.read(source, (*path, name), report)
        return copied(value)

    def schema(self) -> Schema:
        return {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string", "minLength": 1}}
