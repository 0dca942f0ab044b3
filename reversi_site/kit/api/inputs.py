"""What a request may say: every field is named, and a field that nobody reads is refused rather than ignored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.http import QueryDict
from rest_framework import serializers

from reversi_site.kit.api.errors import FieldError, FieldsInvalid

UNKNOWN = "unknown field"


class Body(serializers.Serializer[Any]):
    """The fields of a body, or of an object in it."""

    def to_internal_value(self, data: Any) -> Any:
        """Return the values; refuses unknown fields by name."""
        if isinstance(data, Mapping):
            unknown = {str(name): [UNKNOWN] for name in data if name not in self.fields}
            if unknown:
                raise serializers.ValidationError(unknown)
        return super().to_internal_value(data)


class Query(Body):
    """The parameters of a query."""


def read_body(kind: type[Body], data: Any) -> Mapping[str, Any]:
    """Return the values of a body; raises FieldsInvalid."""
    return _validated(kind(data={} if isinstance(data, QueryDict) else data))


def read_query(kind: type[Query], query: QueryDict) -> Mapping[str, Any]:
    """Return the parameters of a query; raises FieldsInvalid, also for one that stands twice."""
    repeated = [name for name, values in query.lists() if len(values) > 1]
    if repeated:
        raise FieldsInvalid([FieldError(_shown(name), "stands twice") for name in repeated])
    return _validated(kind(data=query.dict()))


def _validated(serializer: Body) -> Mapping[str, Any]:
    if not serializer.is_valid():
        raise FieldsInvalid(list(_errors(serializer.errors, "")))
    values: Mapping[str, Any] = serializer.validated_data
    return values


def _errors(found: Any, path: str) -> Iterator[FieldError]:
    match found:
        case Mapping():
            for name, inner in found.items():
                yield from _errors(inner, _joined(path, name))
        case [Mapping(), *_]:
            for number, inner in enumerate(found):
                yield from _errors(inner, f"{path}[{number}]")
        case [*_]:
            for text in found:
                yield FieldError(path, str(text))
        case _:
            yield FieldError(path, str(found))


def _joined(path: str, name: Any) -> str:
    if name == "non_field_errors":
        return path
    if isinstance(name, int):
        return f"{path}[{name}]"
    return f"{path}.{_shown(name)}" if path else _shown(name)


def _shown(name: str) -> str:
    # The name comes from the caller: cut, and without anything that steers a reader's terminal.
    return (
        name[:100].encode("unicode_escape", "backslashreplace").decode("ascii")
        if not name.isprintable()
        else name[:100]
    )
