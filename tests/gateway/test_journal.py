"""The door from asynchronous code to the store: threads, their connections, and nobody who stops waiting too early."""

import threading
from collections.abc import Callable
from threading import Barrier, Event
from typing import Any

import anyio
import pytest
from django.db import DatabaseError, connection
from django.db.backends.base.base import BaseDatabaseWrapper

from gateway.journal import THREADS, Journal, JournalClosed, JournalLate
from ledger.queries import get_run
from tests.approvals.factories import make_run
from tests.databases import Database
from tests.gateway.gates import PATIENCE_S, Gate


def in_journal(*operations: Callable[[], Any], **fields: Any) -> list[Any]:
    """Run the operations one after the other through one journal."""

    async def main() -> list[Any]:
        async with Journal.open(**fields) as journal:
            return [await journal.run(operation) for operation in operations]

    return anyio.run(main)


def test_journal_runs_an_operation_in_a_thread_of_its_own(db: Database) -> None:
    run = make_run()

    found, thread = in_journal(lambda: get_run(run.id), threading.get_ident)

    assert found == run
    assert thread != threading.get_ident()


def test_journal_raises_what_the_operation_raises(db: Database) -> None:
    def fail() -> None:
        raise KeyError("id")

    with pytest.raises(KeyError):
        in_journal(fail)


def test_journal_has_as_many_threads_as_the_store_bears(db: Database) -> None:
    expected = 1 if db.engine == "sqlite" else THREADS
    together, seen = Barrier(expected), set[int]()

    def meet() -> None:
        together.wait(PATIENCE_S)
        seen.add(threading.get_ident())

    async def main() -> None:
        async with Journal.open() as journal, anyio.create_task_group() as tasks:
            for _ in range(2 * expected):
                tasks.start_soon(journal.run, meet)

    anyio.run(main)

    assert len(seen) == expected


def here() -> tuple[BaseDatabaseWrapper, Any]:
    """Return this thread's connection, opened, as Django knows it and as the driver does."""
    connection.ensure_connection()
    wrapper = connection._connections[connection._alias]  # type: ignore[attr-defined]  # the proxy means another one in each thread
    return wrapper, wrapper.connection


def test_journal_keeps_a_connection_between_operations_and_closes_it_at_its_end(db: Database) -> None:
    (wrapper, first), (_, second) = in_journal(here, here)

    assert first is second
    assert wrapper.connection is None


def test_journal_opens_a_new_connection_where_the_server_lost_the_old_one(postgres_db: Database) -> None:
    run = make_run()
    raw = postgres_db.raw()

    async def main() -> list[Any]:
        found = []
        async with Journal.open() as journal:
            await journal.run(get_run, run.id)
            raw.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            found.append(await journal.run(get_run, run.id))
        return found

    assert anyio.run(main) == [run]


def test_journal_closes_a_connection_that_had_an_error(db: Database) -> None:
    def break_it() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT nothing FROM nowhere")

    async def main() -> bool:
        async with Journal.open() as journal:
            wrapper, _ = await journal.run(here)
            with pytest.raises(DatabaseError):
                await journal.run(break_it)
            return wrapper.connection is None

    assert anyio.run(main)


def test_journal_awaits_in_a_cancelled_scope_what_was_started(db: Database) -> None:
    ended: list[str] = []

    async def main() -> bool:
        gate = Gate("in the thread")

        def work() -> str:
            gate.pass_in_thread("in the thread")
            ended.append("work")
            return "done"

        async def wait(journal: Journal) -> None:
            ended.append(await journal.run(work))

        async with Journal.open() as journal, anyio.create_task_group() as tasks:
            tasks.start_soon(wait, journal)
            await gate.reached()
            tasks.cancel_scope.cancel()
            gate.open()
        return tasks.cancel_scope.cancel_called

    assert anyio.run(main)
    assert ended == ["work", "done"]


def test_journal_starts_nothing_in_a_scope_that_is_cancelled(db: Database) -> None:
    started: list[str] = []

    async def main() -> None:
        async with Journal.open() as journal:
            with anyio.CancelScope() as scope:
                scope.cancel()
                await journal.run(started.append, "work")

    anyio.run(main)

    assert started == []


def run_late(late: Callable[[str], object]) -> list[str]:
    """Have one operation miss its deadline while others wait behind it; returns what ran."""
    ran: list[str] = []
    release = Event()

    def slow() -> str:
        assert release.wait(PATIENCE_S)
        ran.append("slow")
        return "too late"

    async def main() -> None:
        async with Journal.open(deadline_s=0.2) as journal:
            with pytest.raises(JournalLate):
                await journal.run_or_settle(slow, late=late)
            with pytest.raises(JournalLate):
                await journal.run(ran.append, "queued")
            release.set()

    anyio.run(main)
    return ran


def test_journal_gives_what_came_too_late_to_whoever_settles_it(sqlite_db: Database) -> None:
    settled: list[str] = []

    assert run_late(settled.append) == ["slow"]
    assert settled == ["too late"]


def test_journal_says_when_what_came_too_late_could_not_be_settled(
    sqlite_db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(result: str) -> None:
        raise ValueError(result)

    run_late(fail)

    assert "what the journal did too late could not be settled" in caplog.text


def test_journal_takes_nothing_after_its_end(db: Database) -> None:
    async def main() -> None:
        async with Journal.open() as journal:
            await journal.run(int)
        await journal.run(int)

    with pytest.raises(JournalClosed):
        anyio.run(main)
