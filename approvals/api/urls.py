"""The routes of runs, calls, approvals and halts, under `/v1/`."""

from __future__ import annotations

from django.urls import path

from approvals.api import approvals, calls, halts, runs

urlpatterns = [
    path("runs", runs.RunsView.as_view()),
    path("runs/<str:run_id>", runs.RunView.as_view()),
    path("runs/<str:run_id>/close", runs.RunCloseView.as_view()),
    path("runs/<str:run_id>/steps", runs.StepsView.as_view()),
    path("runs/<str:run_id>/steps/<int:number>", runs.StepView.as_view()),
    path("runs/<str:run_id>/events", runs.EventsView.as_view()),
    path("runs/<str:run_id>/calls", calls.CallsView.as_view()),
    path("approvals", approvals.ApprovalsView.as_view()),
    path("approvals/<str:approval_id>", approvals.ApprovalView.as_view()),
    path("approvals/<str:approval_id>/approve", approvals.ApproveView.as_view()),
    path("approvals/<str:approval_id>/deny", approvals.DenyView.as_view()),
    path("halt", halts.HaltView.as_view()),
    path("halts", halts.HaltsView.as_view()),
    path("resume", halts.ResumeView.as_view()),
]
