"""The OpenAPI document, written from what the views declare."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, cast

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from reversi_site.kit.api.answers import HEADER, LONGEST_KEY
from reversi_site.kit.api.problems import CONTENT_TYPE
from reversi_site.kit.api.views import OperationView

PROBLEM: Mapping[str, Any] = {
    "type": "object",
    "description": "Problem details (RFC 9457); `code` is stable, further members depend on it.",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
    },
    "additionalProperties": True,
}
_REFERENCE: Mapping[str, Any] = {"$ref": "#/components/schemas/Problem"}


def choices(words: type[StrEnum], **options: Any) -> serializers.ChoiceField:
    """Return a field that takes one of the words."""
    return serializers.ChoiceField([word.value for word in words], **options)


def words(*allowed: StrEnum, **options: Any) -> serializers.ChoiceField:
    """Return a field that takes one of these words only."""
    return serializers.ChoiceField([word.value for word in allowed], **options)


class Answer(serializers.Serializer[Any]):
    """A document that is answered."""


def page_of(item: type[Answer]) -> type[Answer]:
    """Return the document of a page of such items."""
    fields = {
        "results": item(many=True),
        "next": serializers.URLField(allow_null=True),
        "previous": serializers.URLField(allow_null=True),
    }
    return type(f"{item.__name__}Page", (Answer,), {**fields, "__doc__": "A page of a list."})


class OperationSchema(AutoSchema):
    """Reads the declarations of an OperationView."""

    @property
    def _operation(self) -> OperationView:
        return cast(OperationView, self.view)

    def get_operation_id(self) -> str:
        """Return the method and the view's name, which are unique together."""
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(self._operation).__name__.removesuffix("View")).lower()
        return f"{self.method.lower()}_{words}"

    def get_description(self) -> str:  # type: ignore[override]  # the stubs are of the base below
        """Return what the handler says of itself."""
        return inspect.getdoc(getattr(self._operation, self.method.lower())) or ""

    def get_summary(self) -> str:
        """Return its first sentence."""
        return self.get_description().partition("\n")[0].rstrip(".")

    def get_tags(self) -> list[str]:
        """Return the room of the API."""
        return [self.path.split("/")[2]]

    def get_auth(self) -> list[dict[str, Any]]:
        """Return the one way to authenticate."""
        return [{"key": []}]

    def get_request_serializer(self) -> Any:
        """Return what a POST may say."""
        return self._operation.body if self.method == "POST" and self._operation.body().fields else None

    def get_override_parameters(self) -> list[Any]:
        """Return what a GET may say, and the key of a POST."""
        if self.method == "GET":
            return [self._operation.query] if self._operation.query().fields else []
        text = {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY, "pattern": "^[!-~]+$"}
        says = "Repeating a request with its key answers what the first one was answered."
        return [OpenApiParameter(HEADER, text, OpenApiParameter.HEADER, description=says)]

    def get_response_serializers(self) -> Any:
        """Return what is answered, by status."""
        return dict(self._operation.answers[self.method])


def add_problems(result: dict[str, Any], **context: Any) -> dict[str, Any]:
    """Say of every operation that whatever else it answers is a problem, and close the bodies to unknown fields."""
    result["components"]["schemas"]["Problem"] = dict(PROBLEM)
    problem = {"description": "A problem.", "content": {CONTENT_TYPE: {"schema": dict(_REFERENCE)}}}
    for path in result["paths"].values():
        for operation in path.values():
            for status in ("400", "401", "403", "404", "409", "default"):
                operation["responses"].setdefault(status, problem)
            for reference in _bodies(operation):
                _close(result["components"]["schemas"], reference)
    return result


def open_any_values(result: dict[str, Any], **context: Any) -> dict[str, Any]:
    """Say that any value is any value: `any, or null` matches null twice, which `oneOf` forbids."""
    stack: list[Any] = [result["components"]["schemas"]]
    while stack:
        item = stack.pop()
        if isinstance(item, dict) and {} in item.get("oneOf", ()):
            del item["oneOf"]
        stack.extend(item.values() if isinstance(item, dict) else item if isinstance(item, list) else ())
    return result


def _bodies(operation: Mapping[str, Any]) -> list[str]:
    content = operation.get("requestBody", {}).get("content", {}).values()
    return [each["schema"]["$ref"] for each in content if "$ref" in each["schema"]]


def _close(schemas: dict[str, Any], reference: str) -> None:
    schema = schemas[reference.rpartition("/")[2]]
    schema["additionalProperties"] = False
    for member in schema.get("properties", {}).values():
        for inner in (member, member.get("items", {}), *member.get("allOf", ())):
            if "$ref" in inner and not inner["$ref"].endswith("Enum"):
                _close(schemas, inner["$ref"])
