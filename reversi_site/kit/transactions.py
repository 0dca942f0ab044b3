"""The three kinds of transaction the project knows, named for what they promise.

`durable` is a write that is on disk when the block ends; it refuses to run inside another transaction, so nothing
outside can take it back. `require_transaction` marks operations that write as part of a caller's durable block.
`snapshot` reads everything in the block from one moment. `take_turns` is for what no row stands for yet.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction


@contextmanager
def durable() -> Iterator[None]:
    """Commit for good when the block ends; raises RuntimeError inside another transaction."""
    with transaction.atomic(durable=True):
        yield


def require_transaction() -> None:
    """Raise when no transaction is open: the caller must own the commit."""
    if not connection.in_atomic_block:
        raise RuntimeError("this write belongs inside a durable() block of its caller")


def require_no_transaction() -> None:
    """Raise when a transaction is open: the network must never be touched inside one."""
    if connection.in_atomic_block:
        raise RuntimeError("no transaction may be open while a tool is called")


def take_turns(name: str) -> None:
    """Wait for every other transaction that takes turns under this name; the turn lasts until the commit.

    Needs the caller's transaction. What another one wrote in its turn is seen by whoever looks after this.
    """
    require_transaction()
    # On SQLite an IMMEDIATE transaction holds the one write lock from its start.
    if connection.vendor != "sqlite":
        number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [number])


@contextmanager
def snapshot() -> Iterator[None]:
    """Read from one moment: REPEATABLE READ on PostgreSQL, a deferred read transaction on SQLite."""
    if connection.vendor == "sqlite":
        with _deferred(), transaction.atomic(durable=True):
            yield
        return
    with transaction.atomic(durable=True):
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield


@contextmanager
def _deferred() -> Iterator[None]:
    # A read must not take SQLite's write lock, which IMMEDIATE would do.
    connection.ensure_connection()
    usual = connection.transaction_mode  # type: ignore[attr-defined]  # an attribute of the SQLite backend only
    connection.transaction_mode = "DEFERRED"  # type: ignore[attr-defined]
    try:
        yield
    finally:
        connection.transaction_mode = usual  # type: ignore[attr-defined]
