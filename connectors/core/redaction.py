"""Keeps registered secret values out of every text that leaves a connector (D14)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, quote_plus

REDACTED = "[redacted]"


@dataclass(frozen=True, slots=True, repr=False)
class Redactor:
    """Replaces each registered value, as it is and percent-encoded, wherever it stands in a text."""

    needles: tuple[str, ...] = ()

    @classmethod
    def for_secrets(cls, secrets: Iterable[str]) -> Redactor:
        """Register `secrets`; the longest is replaced first, so that no tail of it is left over."""
        spellings = {spelling for secret in secrets if secret for spelling in _spellings(secret)}
        return cls(tuple(sorted(spellings, key=lambda needle: (-len(needle), needle))))

    def clean(self, text: str) -> str:
        """Return `text` without any registered value."""
        for needle in self.needles:
            text = text.replace(needle, REDACTED)
        return text


def _spellings(secret: str) -> tuple[str, ...]:
    return secret, quote(secret, safe=""), quote_plus(secret)
