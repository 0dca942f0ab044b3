"""How a page is made: who asks, what they must be allowed to do, and what a refusal looks like."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from http import HTTPStatus
from typing import Any, Concatenate, ParamSpec, cast

from django.contrib import admin, messages
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode

from approvals.core.people import Act, Caller, may, require
from approvals.queries import get_caller
from reversi_sdk.errors import ReversiError
from reversi_site.console.refusals import refusal_page
from reversi_site.errors import describe, http_status
from reversi_site.kit.clock import SystemClock

P = ParamSpec("P")
_CALLER = "_reversi_caller"


@dataclass(frozen=True, slots=True)
class Visit:
    """One request of a signed-in person."""

    request: HttpRequest
    caller: Caller
    now: datetime

    @property
    def is_sent(self) -> bool:
        """Whether a form was sent."""
        return self.request.method == "POST"

    @property
    def sent(self) -> Mapping[str, Any] | None:
        """What a form gets: what was sent, or nothing when the page was only opened."""
        return self.request.POST if self.is_sent else None

    def may(self, act: Act) -> bool:
        """Tell whether the caller may do it: what buttons ask."""
        return may(self.caller, act)

    def show(
        self,
        template: str,
        *,
        title: str,
        crumbs: Sequence[tuple[str, str]] = (),
        status: HTTPStatus = HTTPStatus.OK,
        **context: Any,
    ) -> HttpResponse:
        """Return a page inside the console's frame."""
        shown = {**admin.site.each_context(self.request), "title": title, "crumbs": crumbs, "now": self.now, **context}
        return render(self.request, f"console/{template}.html", shown, status=status.value)

    def done(self, said: str, route: str, **parts: Any) -> HttpResponse:
        """Say what was done and go on to another page."""
        messages.success(self.request, said)
        return self.go(route, **parts)

    def refused(self, said: str, route: str, **parts: Any) -> HttpResponse:
        """Say what was refused and go back to a page."""
        messages.error(self.request, said)
        return self.go(route, **parts)

    def go(self, route: str, **parts: Any) -> HttpResponse:
        """Go on to another page."""
        return redirect(address(route, **parts))


View = Callable[Concatenate[HttpRequest, P], HttpResponse]
PageView = Callable[Concatenate[Visit, P], HttpResponse]


def address(route: str, *, query: Mapping[str, Any] | None = None, **parts: Any) -> str:
    """Return the address of a page of the console."""
    path = reverse(f"admin:{route}", kwargs=parts)
    return f"{path}?{urlencode(query, doseq=True)}" if query else path


def caller_of(request: HttpRequest) -> Caller | None:
    """Return who is signed in, roles as they are now; None for nobody, or somebody who was switched off."""
    if isinstance(request.user, AnonymousUser) or not request.user.is_active:
        return None
    if not hasattr(request, _CALLER):
        setattr(request, _CALLER, get_caller(request.user.get_username()))
    found: Caller = getattr(request, _CALLER)
    return found


def page(*acts: Act) -> Callable[[PageView[P]], View[P]]:
    """Make a page of a view: for callers who may do at least one of `acts`; refusals become pages."""

    def make(view: PageView[P]) -> View[P]:
        @wraps(view)
        def shown(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            try:
                return view(_enter(request, acts), *args, **kwargs)
            except ReversiError as error:
                return refusal_page(request, http_status(error), describe(error))

        return cast("View[P]", shown)

    return make


def _enter(request: HttpRequest, acts: Sequence[Act]) -> Visit:
    caller = caller_of(request)
    # The site sends nobody here without a session.
    assert caller is not None
    if not any(may(caller, act) for act in acts):
        require(caller, acts[0])
    return Visit(request, caller, SystemClock().now())
