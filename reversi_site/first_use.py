"""What a deployment on one machine needs before it serves: the store's tables, and somebody who can sign in."""

from __future__ import annotations


def prepare(*, makes_admin: bool = True) -> str | None:
    """Migrate the store and make the first administrator; returns the password the first time.

    Leaves no connection open: what is started next must not share one.
    """
    from reversi_site.store import migrate_store

    migrate_store()
    from django.db import connections

    from approvals.operations.people import ensure_first_admin
    from reversi_site.kit.clock import SystemClock

    try:
        return ensure_first_admin(now=SystemClock().now())[1] if makes_admin else None
    finally:
        connections.close_all()
