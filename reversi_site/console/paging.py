"""Where a page of a list starts, in its address: the place of a row, so that pages stay what they were."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.http import QueryDict
from django.utils.http import urlencode

from reversi_site.kit.keyset import Place

AFTER, BEFORE = "after", "before"


def read_place(asked: QueryDict, values: Callable[[list[str]], tuple[Any, ...]]) -> Place | None:
    """Return the place that an address names; one that is no place is the beginning."""
    name = AFTER if AFTER in asked else BEFORE
    try:
        parts = json.loads(asked.get(name, ""))
        return Place(values([str(part) for part in parts]), is_backward=name == BEFORE)
    except (ValueError, TypeError):
        return None


def as_query(place: Place | None, kept: Mapping[str, str]) -> str | None:
    """Return the query of the page that starts there, with the filters that are kept; None for no such page."""
    if place is None:
        return None
    parts = [value.isoformat() if isinstance(value, datetime) else str(value) for value in place.values]
    return urlencode({**kept, BEFORE if place.is_backward else AFTER: json.dumps(parts)})
