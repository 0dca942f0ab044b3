"""Text that people and databases can bear: control characters refused at the door, or made visible."""

from __future__ import annotations

import unicodedata

from ledger.core.errors import BadField

_ALLOWED_CONTROLS = frozenset("\n\t")


def _is_hostile(character: str) -> bool:
    category = unicodedata.category(character)
    return category in ("Cc", "Cf", "Cs") and character not in _ALLOWED_CONTROLS


def require_text(field: str, value: object, *, limit: int) -> str:
    """Return `value` when it is storable text of at most `limit` characters; raises BadField."""
    if not isinstance(value, str):
        raise BadField(field, f"must be text, not {type(value).__name__}")
    if len(value) > limit:
        raise BadField(field, f"at most {limit} characters, got {len(value)}")
    hostile = next((c for c in value if unicodedata.category(c) in ("Cc", "Cs") and c not in _ALLOWED_CONTROLS), None)
    if hostile is not None:
        raise BadField(field, f"contains the control character U+{ord(hostile):04X}")
    return value


def make_visible(text: str, *, limit: int) -> str:
    """Return text safe to store and show: control, bidi and broken characters escaped, cut at `limit`."""
    shown = "".join(f"\\u{{{ord(c):x}}}" if _is_hostile(c) else c for c in text)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"
