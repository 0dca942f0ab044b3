"""Templates such as `charge-{{args.order_id}}`: texts with references, for keys, touched names and summaries.

No expressions. What a template renders is an identity or a sentence, so a value that is missing or not plain
(null, a list, an object) makes it unavailable, never a text with a gap.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from reversi_sdk.canonical import scalar_text
from reversi_sdk.errors import InvalidInput
from reversi_sdk.references import Found, Reference, ReferenceInvalid, Root, Spelling, look_up, parse_reference

_FIELD: Final = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_TOO_LONG: Final = 10**4000


class TemplateInvalid(InvalidInput):
    """A text is no template."""

    code = "template_invalid"


class TemplateUnavailable(InvalidInput):
    """A template cannot be rendered from these values; `source` is the reference that failed."""

    code = "template_unavailable"

    def __init__(self, *, source: str, problem: str) -> None:
        super().__init__(f"{source} {problem}")
        self.source = source
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Template:
    """A text cut into literals and references."""

    parts: tuple[str | Reference, ...]

    @property
    def references(self) -> tuple[Reference, ...]:
        """The references in the order they are written."""
        return tuple(part for part in self.parts if isinstance(part, Reference))


def parse_template(text: str, roots: Collection[str] = frozenset({"args"})) -> Template:
    """Read a template whose fields start from `roots`; raises TemplateInvalid."""
    pieces = _FIELD.split(text)
    allowed = tuple(Root(root) for root in sorted(roots))
    parts: list[str | Reference] = []
    for number, piece in enumerate(pieces):
        if number % 2:
            parts.append(_field(piece, allowed))
        elif "{{" in piece or "}}" in piece:
            raise TemplateInvalid("{{ and }} must come in pairs around a field such as {{args.id}}")
        elif piece:
            parts.append(piece)
    return Template(tuple(parts))


def _field(piece: str, roots: tuple[Root, ...]) -> Reference:
    name = piece.strip(" ")
    try:
        reference = parse_reference(f"${name}", spelling=Spelling.FLAT, roots=roots)
    except ReferenceInvalid:
        examples = " or ".join(f"{{{{{root.value}.field}}}}" for root in roots)
        raise TemplateInvalid(f"{{{{{piece}}}}} is no field; write {examples}") from None
    if reference.is_optional:
        raise TemplateInvalid(f"{{{{{piece}}}}} cannot be optional: a template is rendered whole or not at all")
    return reference


def render_template(template: Template, roots: Mapping[Root, Any]) -> str:
    """Fill a template; raises TemplateUnavailable when a value is missing or not plain."""
    return "".join(part if isinstance(part, str) else _rendered(part, roots) for part in template.parts)


def _rendered(reference: Reference, roots: Mapping[Root, Any]) -> str:
    found = look_up(reference, roots)
    source = reference.text.removeprefix("$")
    if not isinstance(found, Found):
        raise TemplateUnavailable(source=source, problem="names nothing")
    match found.value:
        case str():
            return found.value
        case float() if not math.isfinite(found.value):
            raise TemplateUnavailable(source=source, problem="is not a finite number")
        case int() if abs(found.value) > _TOO_LONG:
            raise TemplateUnavailable(source=source, problem="is too long a number")
        case bool() | int() | float():
            return scalar_text(found.value)
        case _:
            raise TemplateUnavailable(source=source, problem="is not a plain value")
