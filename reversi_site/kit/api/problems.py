"""Problem details (RFC 9457): the one shape of everything that goes wrong over HTTP (D34)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from django.http import HttpResponse

CONTENT_TYPE = "application/problem+json"
TYPE = "urn:reversi:problem:"


def problem_body(*, status: int, code: str, detail: str, members: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the problem as a document; `members` never take the place of the standard ones."""
    standard = {
        "type": f"{TYPE}{code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
    }
    return {**(members or {}), **standard}


def problem_response(*, status: int, code: str, detail: str, members: Mapping[str, Any] | None = None) -> HttpResponse:
    """Return the problem as an answer, for places where no view is at work."""
    body = problem_body(status=status, code=code, detail=detail, members=members)
    return HttpResponse(json.dumps(body), status=status, content_type=CONTENT_TYPE)
