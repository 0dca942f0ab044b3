"""Template filters and tags that every page has: statuses, times, values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from approvals.core.halts import HaltScope
from reversi_site.console import words

register = template.Library()
LONGEST = 4000


@register.simple_tag
def chip(status: str, text: str = "") -> SafeString:
    """Show a status in its colour; the words say it too."""
    return format_html('<span class="chip chip-{}">{}</span>', tone(status), text or words.words(status))


@register.filter
def tone(status: str) -> str:
    """Return the colour of a status."""
    return words.TONES.get(str(status), "quiet")


@register.filter(name="words")
def words_filter(value: object) -> str:
    """Return a stored word as people read it."""
    return words.words(value)


@register.filter
def question_words(what: str) -> str:
    """Return what an open question about steps is called in a list."""
    return words.QUESTION_WORDS[what]


@register.filter
def event_text(kind: str) -> str:
    """Return what an event says."""
    return words.event_text(kind)


@register.filter
def effect_label(effect: str | None) -> str:
    """Return the words for a tool's effect."""
    return words.effect_label(effect)


@register.filter
def scope_words(scope: HaltScope) -> str:
    """Return what a halt stops."""
    return words.scope_words(scope)


@register.filter
def ago(at: datetime) -> str:
    """Return how long ago a time was."""
    return words.ago(at, timezone.now())


@register.simple_tag
def moment(at: datetime | str | None, *, relative: bool = True) -> SafeString | str:
    """Show a time exactly, in UTC, and how long ago it was."""
    if at is None:
        return ""
    when = datetime.fromisoformat(at) if isinstance(at, str) else at
    exact = when.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    stamp = when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if not relative:
        return format_html('<time datetime="{}">{} UTC</time>', stamp, exact)
    past = words.ago(when, timezone.now())
    return format_html('<time datetime="{}" title="{} UTC">{}</time>', stamp, exact, past)


@register.filter
def as_json(value: Any) -> str:
    """Return a value as JSON, indented where it is more than a scalar."""
    is_flat = not isinstance(value, (Mapping, list, tuple))
    shown = value if is_flat or not isinstance(value, Mapping) else dict(value)
    return json.dumps(shown, ensure_ascii=False, indent=None if is_flat else 2, default=str)


@register.filter
def value_text(value: Any) -> str:
    """Return a value of an event or an argument on one line, cut where it is long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text)} characters)"


@register.filter
def items_of(mapping: Mapping[str, Any] | None) -> list[tuple[str, Any]]:
    """Return a mapping's items, whatever they are called."""
    return [] if mapping is None else list(mapping.items())


@register.filter
def numbers(steps: Iterable[int]) -> str:
    """Return step numbers as people list them."""
    return words.step_numbers(steps)
