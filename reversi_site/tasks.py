"""What the queue's workers call."""

from __future__ import annotations

from reversi_site import schedules
from reversi_site.kit.clock import SystemClock


def run_scheduled_job(job: str) -> None:
    """Do one job of the fixed list."""
    schedules.run_scheduled_job(job=job, now=SystemClock().now())
