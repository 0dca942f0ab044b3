"""What the queue's workers call."""

from __future__ import annotations

from django.conf import settings
from django.utils.module_loading import import_string

from rollback.operations.execution import execute_job


def run_job(job_id: str) -> None:
    """Do a job with the tools that this deployment is wired to."""
    execute_job(job_id=job_id, tools=import_string(settings.REVERSI_TOOLS)())
