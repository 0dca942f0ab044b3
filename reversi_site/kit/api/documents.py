"""JSON as it comes in and goes out.

What comes in is taken apart so that nothing is guessed and nothing can exhaust the process; a number that no double
holds stays what it is. The numbers of a result are never refused (D6): `NaN` arrives as one, and whoever needs exact
values refuses it there. What goes out is ASCII, so that no text can break it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest
from django.http.request import RawPostDataException, UnreadablePostError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from reversi_sdk.canonical import lenient_bytes
from reversi_site.kit.api.errors import BodyIncomplete, BodyMalformed, BodyTooLarge

BODY_LIMIT = 8 * 1024 * 1024
# Python refuses to read longer integers; nothing could be done with them either.
LONGEST_INTEGER = 4000


class Repeated(dict[str, Any]):
    """An object in which a key stands twice: which of the values is meant cannot be known."""


def raw_body(request: HttpRequest) -> bytes:
    """Return the body as it came; raises BodyTooLarge without reading it, and BodyIncomplete."""
    try:
        body = request.body
    except RequestDataTooBig as error:
        raise BodyTooLarge(BODY_LIMIT) from error
    except (UnreadablePostError, RawPostDataException) as error:
        raise BodyIncomplete from error
    if len(body) < int(request.META.get("CONTENT_LENGTH") or 0):
        raise BodyIncomplete
    return body


def read_json(data: bytes) -> Any:
    """Parse one JSON document; raises BodyMalformed."""
    try:
        return json.loads(data.decode("utf-8"), parse_int=_integer, parse_constant=float, object_pairs_hook=_object)
    except UnicodeDecodeError as error:
        raise BodyMalformed("the body is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise BodyMalformed(
            f"the body is not JSON: {error.msg} in line {error.lineno}, column {error.colno}"
        ) from error
    except RecursionError as error:
        raise BodyMalformed("the body is nested too deeply") from error


def _integer(text: str) -> int | float:
    return int(text) if len(text) <= LONGEST_INTEGER else float(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    return members if len(members) == len(pairs) else Repeated(members)


def has_repeated_keys(value: Any) -> bool:
    """Tell whether any object in a value has a key twice."""
    return any(isinstance(item, Repeated) for item in _walk(value))


def _walk(value: Any) -> Iterator[Any]:
    stack = [value]
    while stack:
        item = stack.pop()
        yield item
        if isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


class JsonParser(BaseParser):
    """Reads the body of a request."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        """Parse the body."""
        request: Request = (parser_context or {})["request"]
        value = read_json(raw_body(request._request))
        if isinstance(value, Repeated):
            raise BodyMalformed("a key stands twice in the body")
        return value


class JsonRenderer(BaseRenderer):
    """Writes an answer."""

    media_type = "application/json"
    format = "json"
    charset: str | None = None

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Mapping[str, Any] | None = None
    ) -> bytes:
        """Write the document."""
        return b"" if data is None else written(data)


def written(data: Any) -> bytes:
    """Return a document as bytes that every reader takes."""
    try:
        return json.dumps(data, allow_nan=False, separators=(",", ":")).encode("ascii")
    except ValueError:
        return lenient_bytes(data)


class JsonAlways(DefaultContentNegotiation):
    """Takes JSON only, and answers JSON whatever the client says it accepts: there is nothing else to be had."""

    def select_parser(self, request: Request, parsers: Any) -> BaseParser | None:
        """Return the parser for a body that says it is JSON, and for no other; a pattern of types says nothing."""
        media_type = request.content_type.partition(";")[0].strip().lower()
        return next((parser for parser in parsers if parser.media_type == media_type), None)

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """Return the first renderer."""
        return renderers[0], renderers[0].media_type
