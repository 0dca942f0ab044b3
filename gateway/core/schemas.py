"""Whether arguments are what a tool's input schema asks for, before anything is announced or sent.

A schema is judged as Draft 2020-12 unless its `$schema` names another draft. `format` is not enforced, nothing is
fetched, and what a schema says in a way that cannot be judged here is left to the server that offers the tool: a
refusal is only ever about something that is surely wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import extend, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

MOST_PROBLEMS = 20
_MESSAGE = 300
# A pattern in another dialect must not make the whole schema unusable.
_NO_FORMATS = FormatChecker(formats=())
_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with the arguments; `path` is empty for the arguments as a whole."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message

    def to_json(self) -> dict[str, str]:
        """Return what is answered."""
        return {"path": self.path, "message": self.message}


class _Validator(Protocol):
    def iter_errors(self, instance: Any) -> Iterable[ValidationError]:
        """Yield what is wrong."""


class Schemas:
    """The input schemas of the tools that were called, each made ready once."""

    def __init__(self) -> None:
        self._ready: dict[str, tuple[Any, _Validator | None]] = {}

    def problems(self, tool: str, schema: Any, arguments: Mapping[str, Any]) -> Sequence[Problem]:
        """Return what is wrong with the arguments, at most MOST_PROBLEMS things; empty when they can be sent."""
        validator = self._validator(tool, schema)
        if validator is None:
            return ()
        try:
            return [_problem(error) for error in islice(_innermost(validator.iter_errors(arguments)), MOST_PROBLEMS)]
        except Unresolvable:
            return ()
        except RecursionError:
            return [Problem("", "nested too deeply to be checked")]

    def _validator(self, tool: str, schema: Any) -> _Validator | None:
        known = self._ready.get(tool)
        if known is None or known[0] != schema:
            known = self._ready[tool] = (schema, _made_ready(schema))
        return known[1]


def _made_ready(schema: Any) -> _Validator | None:
    """Return the schema's validator; None when it is no schema that can be judged."""
    if not isinstance(schema, Mapping):
        return None
    kind = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema, format_checker=_NO_FORMATS)
    except (SchemaError, Unresolvable, RecursionError):
        return None
    rules = {name: _leniently(kind.VALIDATORS[name]) for name in ("pattern", "patternProperties")}
    # Without a registry of its own the library would fetch what a reference names.
    validator: _Validator = extend(kind, rules)(schema, registry=Registry())
    return validator


def _leniently(rule: Any) -> Any:
    """Return the rule with expressions that only another dialect understands passed over."""

    def judged(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        try:
            yield from rule(validator, value, instance, schema)
        except re.error:
            return

    return judged


def _innermost(errors: Iterable[ValidationError]) -> Iterator[ValidationError]:
    """Yield the errors; of alternatives that all failed, those of the only alternative that there is."""
    for error in errors:
        branches = {cause.schema_path[0] for cause in error.context or ()}
        if len(branches) == 1:
            yield from _innermost(error.context or ())
        else:
            yield error


def _problem(error: ValidationError) -> Problem:
    message = error.message if len(error.message) <= _MESSAGE else f"{error.message[: _MESSAGE - 1]}…"
    return Problem(_path(error.absolute_path), message)


def _path(parts: Iterable[str | int]) -> str:
    """Return the place as `a.b[0]`."""
    text = ""
    for part in parts:
        if isinstance(part, str) and _NAME.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{part!r}]"
    return text
