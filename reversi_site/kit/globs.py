"""Globs that the database compares: `*` stands for any characters, `?` for one, nothing else is special."""

from __future__ import annotations

from typing import Any

from django.db.models import BooleanField, F, Func, Value


class MatchesGlob(Func):
    """Whether a column matches a glob, letter case respected, in time that no pattern can blow up."""

    output_field = BooleanField()
    template = "%(expressions)s"

    def __init__(self, column: str, glob: str) -> None:
        super().__init__(F(column), Value(glob))
        self._pattern = glob

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        """Render with SQLite's own operator, in which a bracket would open a class."""
        return self._with(_escaped(self._pattern, {"[": "[[]"}), " GLOB ").as_sql(compiler, connection, **extra)

    def as_postgresql(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        """Render with LIKE."""
        replaced = {"\\": "\\\\", "%": "\\%", "_": "\\_", "*": "%", "?": "_"}
        return self._with(_escaped(self._pattern, replaced), " LIKE ").as_sql(compiler, connection, **extra)

    def _with(self, pattern: str, operator: str) -> Func:
        return Func(
            self.source_expressions[0],
            Value(pattern),
            template=self.template,
            arg_joiner=operator,
            output_field=BooleanField(),
        )


def _escaped(glob: str, replaced: dict[str, str]) -> str:
    return "".join(replaced.get(character, character) for character in glob)
