"""Every page and action of the console by its address; what only acts takes a POST and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpResponse
from django.views.decorators.http import require_http_methods, require_POST

from reversi_site.console.pages import approvals, governance, halts, jobs, keys, people, plans, runs, steps

View = Callable[..., HttpResponse]


def _form(view: View) -> View:
    """Let a page be opened and its form be sent."""
    shown: View = require_http_methods(["GET", "HEAD", "POST"])(view)
    return shown


def _page(view: View) -> View:
    shown: View = require_http_methods(["GET", "HEAD"])(view)
    return shown


def _act(view: View) -> View:
    shown: View = require_POST(view)
    return shown


RUN = "runs/<str:run_id>/"
STEP = f"{RUN}steps/<int:number>/"
JOB = f"{RUN}jobs/<str:job_id>/"

ROUTES: tuple[tuple[str, str, Any], ...] = (
    ("runs/", "runs", _page(runs.run_list)),
    (RUN, "run", _page(runs.run_timeline)),
    (f"{RUN}plan/", "plan", _page(plans.run_plan)),
    (f"{RUN}rollback/", "rollback", _form(plans.rollback)),
    (f"{RUN}events/", "events", _page(runs.run_events)),
    (f"{RUN}report/", "report", _page(jobs.run_report)),
    (f"{RUN}verify/", "verify", _act(jobs.verify)),
    (f"{RUN}close/", "close", _act(runs.close_run)),
    (JOB, "job", _page(jobs.job)),
    (f"{JOB}progress.json", "job_progress", _page(jobs.job_progress)),
    (STEP, "step", _page(steps.step)),
    (f"{STEP}resolve/", "resolve", _form(steps.resolve_step)),
    ("approvals/", "approvals", _page(approvals.approval_list)),
    ("approvals/<str:approval_id>/", "approval", _page(approvals.approval)),
    ("approvals/<str:approval_id>/vote/", "vote", _act(approvals.vote)),
    ("halts/", "halts", _page(halts.halt_list)),
    ("halts/add/", "halt_add", _act(halts.halt_add)),
    ("halts/lift/", "halt_lift_all", _act(halts.halt_lift_all)),
    ("halts/<str:halt_id>/lift/", "halt_lift", _act(halts.halt_lift)),
    ("keys/", "keys", _page(keys.key_list)),
    ("keys/create/", "key_create", _form(keys.key_create)),
    ("keys/<str:prefix>/revoke/", "key_revoke", _act(keys.key_revoke)),
    ("people/", "people", _page(people.person_list)),
    ("people/add/", "person_add", _act(people.person_add)),
    ("people/<str:username>/", "person", _page(people.person)),
    ("people/<str:username>/roles/", "person_roles", _act(people.person_roles)),
    ("people/<str:username>/password/", "person_password", _act(people.person_password)),
    ("governance/", "governance", _page(governance.governance)),
    ("records/", "records", _page(governance.records)),
)
