"""Put jobs on the queue: the one place of rollback that knows it.

Called inside the transaction that writes the job: the task exists when and only when the job does.
"""

from __future__ import annotations

from django_q.tasks import async_task

from reversi_site.kit.transactions import require_transaction


def enqueue_job(job_id: str) -> None:
    """Enqueue a job; its id is all that travels, and delivering it twice does nothing twice."""
    require_transaction()
    async_task("rollback.tasks.run_job", job_id, task_name=job_id)
