"""Time as something passed in: the process's clock for records, the database's for leases."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Protocol

from django.db import connection
from django.db.models import BigIntegerField, Func


class Clock(Protocol):
    """Where an operation takes its time from."""

    def now(self) -> datetime:
        """Return an aware UTC time."""


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """Return the present."""
        return datetime.now(UTC)


class DatabaseNowMs(Func):
    """The database's own clock in epoch milliseconds, so that workers on many machines agree on a lease's end."""

    arity = 0
    output_field = BigIntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> tuple[str, tuple[str | int, ...]]:
        """Render for SQLite."""
        return "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)", ()

    def as_postgresql(self, compiler: Any, connection: Any, **extra: Any) -> tuple[str, tuple[str | int, ...]]:
        """Render for PostgreSQL; `clock_timestamp` moves on inside a transaction, as a lease must."""
        return "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::bigint", ()


def database_now_ms() -> int:
    """Ask the database what time it is, in epoch milliseconds."""
    expression = DatabaseNowMs()
    render = expression.as_sqlite if connection.vendor == "sqlite" else expression.as_postgresql
    sql, params = render(None, connection)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {sql}", params)
        return int(cursor.fetchone()[0])
