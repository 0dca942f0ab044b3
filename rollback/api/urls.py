"""The routes of outcomes, plans and rollbacks, under `/v1/`."""

from __future__ import annotations

from django.urls import path

from rollback.api import compensations, outcomes, reconciling, rollbacks

urlpatterns = [
    path("runs/<str:run_id>/plan", rollbacks.PlanView.as_view()),
    path("runs/<str:run_id>/report", rollbacks.ReportView.as_view()),
    path("runs/<str:run_id>/rollback", rollbacks.RollbackView.as_view()),
    path("runs/<str:run_id>/verify", rollbacks.VerifyView.as_view()),
    path("runs/<str:run_id>/reconcile", reconciling.ReconcileView.as_view()),
    path("runs/<str:run_id>/steps/<int:number>/complete", outcomes.CompleteView.as_view()),
    path("runs/<str:run_id>/steps/<int:number>/resolve", outcomes.ResolveView.as_view()),
    path("runs/<str:run_id>/steps/<int:number>/compensation", compensations.CompensationView.as_view()),
    path(
        "runs/<str:run_id>/steps/<int:number>/compensation/complete",
        compensations.CompensationCompleteView.as_view(),
    ),
]
