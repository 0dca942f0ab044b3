"""`reversi worker`: run queued rollbacks and scheduled jobs."""

from __future__ import annotations

import click

from reversi_site.cli.output import note


@click.command(short_help="Run queued rollbacks and scheduled jobs.")
def worker() -> None:
    """Run the rollbacks that others queued, and the scheduled jobs, until interrupted.

    Start as many as you like, on as many machines as share the database. SIGTERM or Ctrl-C stops it once the jobs
    under way are finished; a killed worker's rollback is taken over by another one. REVERSI_WORKERS sets how many
    processes it runs (2).

    \b
    Examples:
      reversi worker
      REVERSI_WORKERS=4 DATABASE_URL=postgres://reversi@db/reversi reversi worker
    """
    from reversi_site.store import open_store

    open_store()
    from reversi_site.worker import run_worker

    run_worker(announce=note)
