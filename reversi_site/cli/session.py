"""What most commands do between their arguments and their one call: open the store, find the run, know the time."""

from __future__ import annotations

from datetime import datetime

from reversi_site.cli.parameters import require_one_run


def open_store() -> datetime:
    """Open the store and return the time of this command."""
    from reversi_site import store

    store.open_store()
    from reversi_site.kit.clock import SystemClock

    return SystemClock().now()


def chosen_run(run: str | None, is_last: bool) -> str:
    """Return the id of the run that was named or, with `--last`, opened last."""
    require_one_run(run, is_last)
    from ledger import queries

    return queries.get_run(run).id if run is not None else queries.get_last_run().id
