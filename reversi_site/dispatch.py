"""Put scheduled jobs on the queue: the one place of the composition root that knows it.

Called inside the transaction that claims the schedule: the job is enqueued when and only when the claim holds.
"""

from __future__ import annotations

from django_q.tasks import async_task


def enqueue_scheduled_job(job: str) -> None:
    """Enqueue a job of the fixed list; its name is all that travels."""
    async_task("reversi_site.tasks.run_scheduled_job", job, task_name=job)
