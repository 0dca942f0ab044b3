"""Every address of the web application: the API, its description, the signs of life, the console."""

from __future__ import annotations

from django.urls import include, path

from reversi_site import description, health

handler400 = "reversi_site.problems.bad_request"
handler404 = "reversi_site.problems.not_found"
handler500 = "reversi_site.problems.server_error"

urlpatterns = [
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("v1/openapi.json", description.OpenApiView.as_view(), name="openapi"),
    path("v1/docs", description.DocsView.as_view(url_name="openapi"), name="docs"),
    path("v1/", include("approvals.api.urls")),
    path("v1/", include("rollback.api.urls")),
    path("", include("reversi_site.console.urls")),
]
