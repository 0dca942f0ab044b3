"""The API's description of itself over HTTP: the OpenAPI document and the page to browse it."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.views import View
from drf_spectacular.views import SpectacularSwaggerSplitView

from reversi_site.openapi import openapi_text

# The page of the sidecar writes styles into itself and shows icons as data.
DOCS_POLICY: Final = "; ".join(
    (
        "default-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "object-src 'none'",
    )
)


class OpenApiView(View):
    """The document; whoever may know the address may know this."""

    def get(self, request: HttpRequest) -> HttpResponse:
        """Answer the document."""
        return HttpResponse(openapi_text(), content_type="application/json")


class DocsView(SpectacularSwaggerSplitView):
    """A page to browse the document; everything it loads comes from here."""

    authentication_classes: Any = []
    permission_classes: Any = []

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Answer the page, with a policy that lets its own script and styles work."""
        response = super().dispatch(request, *args, **kwargs)
        response.headers["Content-Security-Policy"] = DOCS_POLICY
        return response
