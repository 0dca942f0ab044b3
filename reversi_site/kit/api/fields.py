"""Fields of a body, exact about their JSON type: a "5" is no 5, and a "false" is not false."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from reversi_site.kit.api.documents import has_repeated_keys

LARGEST = 2**31 - 1
REPEATED = "a key stands twice in an object"


class Text(serializers.CharField):
    """A text, as it came."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"trim_whitespace": False, "allow_blank": True, **options})

    def to_internal_value(self, data: Any) -> str:
        """Return the text."""
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class Integer(serializers.IntegerField):
    """A whole number."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"min_value": 0, "max_value": LARGEST, **options})

    def to_internal_value(self, data: Any) -> int:
        """Return the number."""
        if type(data) is not int:
            self.fail("invalid")
        return data


class Flag(serializers.BooleanField):
    """True or false."""

    def to_internal_value(self, data: Any) -> bool:
        """Return the flag."""
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class Many(serializers.ListField):
    """A list; nothing else is taken for one."""

    def to_internal_value(self, data: Any) -> list[Any]:
        """Return the items."""
        if not isinstance(data, list):
            self.fail("not_a_list", input_type=type(data).__name__)
        return super().to_internal_value(data)


class Texts(serializers.DictField):
    """An object of texts by name."""

    child = Text()


@extend_schema_field({"type": "object", "additionalProperties": {}})
class JsonObject(serializers.Field[Any, Any, Any, Any]):
    """An object of any JSON values, in which no key stands twice."""

    default_error_messages: ClassVar[dict[str, Any]] = {"invalid": "Must be an object.", "repeated": REPEATED}

    def to_internal_value(self, data: Any) -> Any:
        """Return the object."""
        if not isinstance(data, dict):
            self.fail("invalid")
        if has_repeated_keys(data):
            self.fail("repeated")
        return data

    def to_representation(self, value: Any) -> Any:
        """Return the object."""
        return value


@extend_schema_field({})
class JsonValue(serializers.Field[Any, Any, Any, Any]):
    """Any JSON value; it is never refused."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_null": True, **options})

    def to_internal_value(self, data: Any) -> Any:
        """Return the value."""
        return data

    def to_representation(self, value: Any) -> Any:
        """Return the value."""
        return value
