"""What a page says when something is refused: one way to show it.

Views have no `try` for domain errors. A page that only shows turns them into a page of their own; a form asks
`refusal_of`, which is the one place where an operation's refusal becomes a sentence beside the form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from reversi_sdk.errors import Conflict, InvalidInput, ReversiError
from reversi_site.errors import describe

TITLES: Mapping[HTTPStatus, str] = {
    HTTPStatus.BAD_REQUEST: "This cannot be read",
    HTTPStatus.NOT_FOUND: "Not found",
    HTTPStatus.FORBIDDEN: "Not allowed",
    HTTPStatus.CONFLICT: "Not as things stand",
    HTTPStatus.SERVICE_UNAVAILABLE: "Not available now",
    HTTPStatus.INTERNAL_SERVER_ERROR: "Something went wrong",
}


def refusal_of(act: Callable[[], object], *more: type[ReversiError]) -> str | None:
    """Run an operation; return what it refused and could be mended in the form, or None when it was done.

    `more` are errors that this form can mend, besides conflicts and invalid input.
    """
    mended: tuple[type[ReversiError], ...] = (Conflict, InvalidInput, *more)
    try:
        act()
    except mended as error:
        return describe(error)
    return None


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a form that was not sent from a page of ours, or too long after it was opened."""
    said = "The form is too old or was not sent from this console. Go back, reload the page and send it again."
    return refusal_page(request, HTTPStatus.FORBIDDEN, said)


def refusal_page(request: HttpRequest, status: HTTPStatus, said: str) -> HttpResponse:
    """Return the page that says what was refused."""
    from django.contrib import admin

    title = TITLES.get(status, "Not possible")
    context = {**admin.site.each_context(request), "title": title, "said": said, "status": status.value}
    return render(request, "console/refusal.html", context, status=status.value)
