"""Everything that goes wrong over HTTP, as one shape: problem details with a stable code (D34).

No answer says anything about the inside: no trace, no query, no text of an exception that nobody declared.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views import defaults
from rest_framework.exceptions import APIException
from rest_framework.response import Response

from approvals.core.errors import ApprovalRequired, BeforeRequired, CallBlocked, NotAuthenticated, WiderThanKey
from ledger.core.errors import OutcomeConflict
from reversi_sdk.errors import ReversiError, Unavailable
from reversi_site.errors import http_status, is_database_unavailable
from reversi_site.kit.api.authentication import CHALLENGE
from reversi_site.kit.api.errors import CredentialsMissing, FieldsInvalid
from reversi_site.kit.api.problems import CONTENT_TYPE, problem_body, problem_response
from rollback.core.errors import PlanStale, RollbackRunning, UndoNotPossible

API = "/v1/"
# What a caller is told of what only the deployment can mend.
UNTOLD = "this cannot be served at the moment; the log of the deployment says why"
_LOG = logging.getLogger(__name__)

# What a problem carries besides the standard members, by class of error.
MEMBERS: Mapping[type[ReversiError], Callable[[Any], dict[str, Any]]] = {
    CallBlocked: lambda error: {"decision": "blocked", "violations": [found.to_json() for found in error.violations]},
    BeforeRequired: lambda error: {
        "decision": "before_required",
        "before": {"tool": error.tool, "arguments": error.arguments},
    },
    FieldsInvalid: lambda error: {"errors": [found.to_json() for found in error.errors]},
    OutcomeConflict: lambda error: {"recorded": error.recorded, "reported": error.reported},
    PlanStale: lambda error: {"digest": error.current},
    RollbackRunning: lambda error: {"job": error.job_id, "state": error.state},
    UndoNotPossible: lambda error: {"blocked_by": list(error.blocked_by)},
    WiderThanKey: lambda error: {"field": error.field},
}


def handle_exception(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """Return the answer for what a view raised; None leaves it to whoever handles what nobody declared."""
    if isinstance(error, ApprovalRequired):
        return Response({"decision": "approval_required", "approval": error.approval.to_json()}, status=202)
    if isinstance(error, ReversiError):
        return _declared(error)
    if isinstance(error, APIException):
        return _of_framework(error)
    if is_database_unavailable(error):
        _LOG.error("the store cannot be used: %s", error)
        return _problem(HTTPStatus.SERVICE_UNAVAILABLE, Unavailable.code, UNTOLD)
    return None


def _declared(error: ReversiError) -> Response:
    members = next((MEMBERS[kind](error) for kind in type(error).__mro__ if kind in MEMBERS), {})
    status = http_status(error)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        _LOG.error("%s: %s", error.code, error)
        return _problem(status, error.code, UNTOLD)
    if isinstance(error, NotAuthenticated | CredentialsMissing):
        # Which of the reasons it was would tell a thief what was stolen.
        response = _problem(status, NotAuthenticated.code, "a valid API key is required: Authorization: Bearer rk_…")
        response["WWW-Authenticate"] = CHALLENGE
        return response
    return _problem(status, error.code, str(error) or error.code, members)


def _of_framework(error: APIException) -> Response:
    status = HTTPStatus(error.status_code)
    code = getattr(error.detail, "code", None) or error.default_code
    return _problem(status, str(code), str(error.detail))


def _problem(status: int, code: str, detail: str, members: Mapping[str, Any] | None = None) -> Response:
    body = problem_body(status=status, code=code, detail=detail, members=members)
    return Response(body, status=status, content_type=CONTENT_TYPE)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer what Django refuses before any view."""
    if not request.path.startswith(API):
        return defaults.bad_request(request, exception)
    return problem_response(status=400, code="bad_request", detail="the request cannot be understood")


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer for a route that does not exist."""
    if not request.path.startswith(API):
        return defaults.page_not_found(request, exception)
    return problem_response(status=404, code="not_found", detail="there is no such route")


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer for what nobody declared; the log has it."""
    if not request.path.startswith(API):
        return defaults.server_error(request)
    return problem_response(status=500, code="internal_error", detail="something went wrong inside; it was logged")
