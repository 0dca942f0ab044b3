"""What a browser may load for a page, and what no page may contain.

A page loads from here only, and nothing is written into the page itself. Characters that steer or reorder text are
made visible in the finished page, so that no template, and no page of the admin, can forget to.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

HEADER = "Content-Security-Policy"
POLICY = "; ".join(
    (
        "default-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "object-src 'none'",
    )
)
_LAYOUT = frozenset("\n\r\t")
_STEERING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})

GetResponse = Callable[[HttpRequest], HttpResponseBase]


class ContentSecurityPolicy:
    """Gives every answer the policy, unless its view has set one of its own."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        response.headers.setdefault(HEADER, POLICY)
        return response


class CookiesKeptToHttps:
    """Has a browser send cookies that came over HTTPS over nothing else; on a loopback address there is no HTTPS."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if request.is_secure():
            for cookie in response.cookies.values():
                cookie["secure"] = True
        return response


class SteeringMadeVisible:
    """Replaces control, bidirectional and invisible characters of HTML pages by their numbers."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if isinstance(response, HttpResponse) and response.headers.get("Content-Type", "").startswith("text/html"):
            response.content = without_steering(response.content.decode("utf-8")).encode("utf-8")
        return response


def without_steering(text: str) -> str:
    """Return the text with every steering character shown as `\\u{…}`; line breaks and tabs stay."""
    # Looked at once per distinct character: a page has few, however long it is.
    found = {c for c in set(text) - _LAYOUT if unicodedata.category(c) in _STEERING}
    return text.translate({ord(c): f"\\u{{{ord(c):x}}}" for c in found}) if found else text
