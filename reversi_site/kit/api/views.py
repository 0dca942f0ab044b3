"""The base of every view: who may call, what the request says, and that a repeated request is answered once.

A view declares: `rights` by method (who may), `body` and `query` (what a POST and a GET may say), `answers` (what is
answered, by method and status). Its methods then make one call with `self.given` and answer. The declarations are
read by the published schema and by the test of every route with every role.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, cast

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.module_loading import import_string
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView

from reversi_site.kit.api.answers import REPLAYED, KeptAnswer, Reservation, idempotency_key, is_kept, kept_answers
from reversi_site.kit.api.authentication import BearerAuthentication, HasName, Principal
from reversi_site.kit.api.documents import JsonAlways, JsonParser, JsonRenderer, raw_body
from reversi_site.kit.api.inputs import Body, Query, read_body, read_query
from reversi_site.kit.clock import SystemClock

_READS = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class Right:
    """What a caller must be allowed: on a run of its own, and on others'. Neither: every caller may."""

    own: str | None = None
    others: str | None = None


ANYBODY = Right()


def right(act: str) -> Right:
    """Return the right that is the same on every run, or has to do with none."""
    return Right(act, act)


class Authorize(Protocol):
    """What `settings.API_AUTHORIZE` names."""

    def __call__(self, *, caller: Any, right: Right, run_id: str | None) -> None:
        """Return when the caller has the right; raises what the error table answers 403 or 404 for."""


class _Replay(Exception):
    """Ends a request whose answer is known."""

    def __init__(self, answer: KeptAnswer) -> None:
        super().__init__()
        self.answer = answer


class OperationView(APIView):
    """One route."""

    authentication_classes = (BearerAuthentication,)
    permission_classes = ()
    parser_classes = (JsonParser,)
    renderer_classes = (JsonRenderer,)
    content_negotiation_class = JsonAlways
    metadata_class = None

    rights: ClassVar[Mapping[str, Right]] = {}
    body: ClassVar[type[Body]] = Body
    query: ClassVar[type[Query]] = Query
    answers: ClassVar[Mapping[str, Mapping[int, type[BaseSerializer[Any]]]]] = {}
    given: Mapping[str, Any]
    _reservation: Reservation | None = None

    @property
    def allowed_methods(self) -> list[str]:
        """What a refused method is told."""
        return [*self.rights, *(["HEAD"] if "GET" in self.rights else [])]

    @property
    def caller(self) -> Any:
        """Whoever calls; each app casts it to its own type."""
        return cast(Principal, self.request.user).caller

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Let the request through, or raise: method, key, right, what it says, and whether it came before."""
        method = "GET" if request.method in _READS else str(request.method)
        if method not in self.rights:
            raise MethodNotAllowed(method)
        super().initial(request, *args, **kwargs)
        authorize = cast(Authorize, import_string(settings.API_AUTHORIZE))
        authorize(caller=self.caller, right=self.rights[method], run_id=kwargs.get("run_id"))
        if method == "GET":
            self.given = read_query(self.query, request.query_params)
            return
        self.given = read_body(self.body, request.data)
        self._reserve(request)

    def _reserve(self, request: Request) -> None:
        key = idempotency_key(request)
        if key is None:
            return
        caller: HasName = self.caller
        found = kept_answers().begin_answer(
            caller=caller.username,
            route=f"{request.method} {request.path}",
            key=key,
            body=raw_body(request._request),
            now=SystemClock().now(),
        )
        if isinstance(found, KeptAnswer):
            raise _Replay(found)
        self._reservation = found

    def handle_exception(self, exc: Exception) -> Response:
        """Answer what was raised; a known answer is one."""
        if isinstance(exc, _Replay):
            return cast(Response, _replayed(exc.answer))
        return super().handle_exception(exc)

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Answer the request, and keep the answer where the request has a key."""
        try:
            response = super().dispatch(request, *args, **kwargs)
        except Exception:
            self._settle(None)
            raise
        self._settle(response)
        return response

    def _settle(self, response: HttpResponseBase | None) -> None:
        if self._reservation is None:
            return
        if not isinstance(response, Response) or not is_kept(response.status_code, is_refusal=response.exception):
            kept_answers().forget_answer(reservation=self._reservation)
            return
        response.render()
        answer = KeptAnswer(response.status_code, response["Content-Type"], response.content)
        kept_answers().keep_answer(reservation=self._reservation, answer=answer)


def _replayed(answer: KeptAnswer) -> HttpResponse:
    return HttpResponse(answer.body, status=answer.status, content_type=answer.content_type, headers={REPLAYED: "true"})
