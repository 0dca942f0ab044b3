"""No request body beyond the limit, whether it says its length or not; nothing past the limit is ever read.

It stands before Django, which reads nothing of a body without a length. A chunked body is read here, up to the limit,
and handed on with its length.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any

from reversi_site.kit.api.documents import BODY_LIMIT
from reversi_site.kit.api.errors import BodyIncomplete, BodyTooLarge
from reversi_site.kit.api.problems import CONTENT_TYPE, problem_body

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]

_PIECE = 64 * 1024


class BodyLimit:
    """Wraps a WSGI application."""

    def __init__(self, application: Application, *, limit: int = BODY_LIMIT) -> None:
        self._application = application
        self._limit = limit

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve the request, or refuse it for its body."""
        try:
            length = self._length(environ)
        except OSError:
            return _refusal(start_response, HTTPStatus.REQUEST_TIMEOUT, BodyIncomplete.code, str(BodyIncomplete()))
        if length > self._limit:
            error = BodyTooLarge(self._limit)
            return _refusal(start_response, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, error.code, str(error))
        return self._application(environ, start_response)

    def _length(self, environ: Environ) -> int:
        if "chunked" not in environ.get("HTTP_TRANSFER_ENCODING", "").lower():
            text = environ.get("CONTENT_LENGTH") or "0"
            return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else self._limit + 1
        body = self._read(environ["wsgi.input"])
        environ["wsgi.input"] = io.BytesIO(body)
        environ["CONTENT_LENGTH"] = str(len(body))
        return len(body)

    def _read(self, stream: Any) -> bytes:
        body = bytearray()
        while len(body) <= self._limit:
            piece = stream.read(min(_PIECE, self._limit + 1 - len(body)))
            if not piece:
                break
            body += piece
        return bytes(body)


def _refusal(start_response: StartResponse, status: HTTPStatus, code: str, detail: str) -> Iterable[bytes]:
    body = json.dumps(problem_body(status=status, code=code, detail=detail)).encode()
    headers = [("Content-Type", CONTENT_TYPE), ("Content-Length", str(len(body))), ("Connection", "close")]
    start_response(f"{status.value} {status.phrase}", headers)
    return [body]
