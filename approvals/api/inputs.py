"""What a caller observed of a thing, before or after its call (D35)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework.exceptions import ValidationError

from approvals.core.before import BeforeAnswer
from reversi_site.kit.api.fields import Flag, JsonValue, Text
from reversi_site.kit.api.inputs import Body

ERROR = 2000


class Observation(Body):
    """The answer of a read: the value that was found, that there was nothing, or the text of its error."""

    found = Flag(required=False)
    value = JsonValue(required=False)
    error = Text(required=False, allow_null=True, max_length=ERROR)

    def validate(self, attrs: Any) -> Any:
        """Refuse an answer that says nothing, or two things."""
        if (attrs.get("error") is None) == ("found" not in attrs):
            raise ValidationError("give found (with the value), or error")
        if attrs.get("found") and "value" not in attrs:
            raise ValidationError({"value": ["required where something was found"]})
        return attrs


def observed(given: Mapping[str, Any] | None) -> BeforeAnswer | None:
    """Return the observation as the gate takes it."""
    if given is None:
        return None
    return BeforeAnswer(is_found=given.get("found", True), value=given.get("value"), error=given.get("error"))
