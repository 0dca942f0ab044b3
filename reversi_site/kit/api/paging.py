"""Lists over HTTP: `{results, next, previous}`, where the links carry an opaque cursor."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from rest_framework import serializers
from rest_framework.request import Request

from reversi_site.kit.api.errors import CursorInvalid
from reversi_site.kit.api.inputs import Query
from reversi_site.kit.keyset import Page, Place

Item = TypeVar("Item")

LARGEST = 2**63 - 1


def read_number(value: Any) -> int:
    """Return a number of a cursor."""
    if type(value) is not int or not 0 <= value <= LARGEST:
        raise ValueError("no number")
    return value


def read_word(value: Any) -> str:
    """Return a text of a cursor."""
    if not isinstance(value, str) or not value.isascii() or not value.isprintable():
        raise ValueError("no text")
    return value


def read_time(value: Any) -> datetime:
    """Return a time of a cursor."""
    at = datetime.fromisoformat(read_word(value))
    if at.tzinfo is None:
        raise ValueError("no zone")
    return at


Reader = Callable[[Any], Any]


class PageQuery(Query):
    """What every list takes."""

    cursor = serializers.CharField(required=False, max_length=1000, help_text="From `next` or `previous` of a page.")
    limit = serializers.IntegerField(required=False, min_value=1, max_value=200, default=50)


def place_of(given: Mapping[str, Any], readers: Sequence[Reader]) -> Place | None:
    """Return where the page starts; raises CursorInvalid."""
    text = given.get("cursor")
    if text is None:
        return None
    try:
        data = json.loads(base64.urlsafe_b64decode(text.encode("ascii")))
        values = [read(value) for read, value in zip(readers, data["at"], strict=True)]
        return Place(tuple(values), is_backward=data["back"] is True)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, binascii.Error) as error:
        raise CursorInvalid from error


def cursor_of(place: Place) -> str:
    """Return the cursor of a place."""
    values = [value.isoformat() if isinstance(value, datetime) else value for value in place.values]
    text = json.dumps({"at": values, "back": place.is_backward}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode("ascii")).decode("ascii")


def page_document(request: Request, page: Page[Item], document: Callable[[Item], Mapping[str, Any]]) -> dict[str, Any]:
    """Return a page as it is answered."""
    return {
        "results": [document(item) for item in page.items],
        "next": _link(request, page.next),
        "previous": _link(request, page.previous),
    }


def _link(request: Request, place: Place | None) -> str | None:
    if place is None:
        return None
    query = request.query_params.copy()
    query["cursor"] = cursor_of(place)
    return request.build_absolute_uri(f"{request.path}?{query.urlencode()}")
