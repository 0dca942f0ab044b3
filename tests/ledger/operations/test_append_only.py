"""The database itself refuses to change what was written, and re-computing the chain finds what slipped past it."""

from typing import Any

import pytest
from django.db import DatabaseError, connection

from ledger import queries
from ledger.models import Event, GovernanceEvent
from ledger.operations.governance import record_act
from reversi_site.kit.transactions import durable
from tests.databases import Database
from tests.ledger.factories import NOW, make_run, make_step

REFUSED = (
    "UPDATE ledger_event SET kind = 'failed'",
    "UPDATE ledger_event SET hash = hash WHERE seq = 0",
    "DELETE FROM ledger_event",
    "DELETE FROM ledger_event WHERE seq = 1",
    "UPDATE ledger_eventdata SET data = data",
    "UPDATE ledger_governanceevent SET actor = 'nobody'",
    "DELETE FROM ledger_governanceevent",
)
SQLITE_REFUSED = (
    "INSERT OR REPLACE INTO ledger_event SELECT * FROM ledger_event WHERE seq = 1",
    "REPLACE INTO ledger_event SELECT id + 9, run_id, seq, 'x', at, actor, 1, NULL, prev, hash FROM ledger_event",
    "INSERT OR REPLACE INTO ledger_eventdata SELECT event_id, x'7b7d' FROM ledger_eventdata",
    "INSERT OR REPLACE INTO ledger_governanceevent SELECT * FROM ledger_governanceevent",
)
POSTGRES_REFUSED = (
    "TRUNCATE ledger_event CASCADE",
    "TRUNCATE ledger_eventdata",
    "TRUNCATE ledger_governanceevent",
    "INSERT INTO ledger_event SELECT * FROM ledger_event WHERE seq = 1 ON CONFLICT (id) DO UPDATE SET kind = 'failed'",
)


def journal() -> str:
    run = make_run()
    make_step(run_id=run.id)
    with durable():
        record_act(kind="halt_added", actor="dana", data={"reason": "look"}, now=NOW)
    return run.id


def contents() -> list[Any]:
    return [*Event.objects.order_by("pk").values_list(), *GovernanceEvent.objects.order_by("pk").values_list()]


def statements(engine: str) -> tuple[str, ...]:
    return REFUSED + (SQLITE_REFUSED if engine == "sqlite" else POSTGRES_REFUSED)


def test_any_change_of_what_was_written_is_refused(db: Database) -> None:
    journal()
    before = contents()
    for statement in statements(db.engine):
        with pytest.raises(DatabaseError), connection.cursor() as cursor:
            cursor.execute(statement)
        assert contents() == before, statement


def test_purging_data_keeps_the_chain(db: Database) -> None:
    run_id = journal()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM ledger_eventdata")
    report = queries.check_run_chain(run_id)
    assert (report.count, report.purged, report.problems) == (3, 3, ())


@pytest.mark.parametrize(
    ("column", "value"), [("kind", "failed"), ("actor", "x"), ("at", "x"), ("step", 7), ("data_hash", "0" * 64)]
)
def test_an_edit_behind_the_triggers_is_found(db: Database, column: str, value: str | int) -> None:
    run_id = journal()
    _without_triggers(db, f"UPDATE ledger_event SET {column} = %s WHERE seq = 1", value)
    problems = queries.check_run_chain(run_id).problems
    assert any(problem.startswith("event 1:") for problem in problems)


def test_an_edit_of_data_behind_the_triggers_is_found(db: Database) -> None:
    run_id = journal()
    _without_triggers(db, "UPDATE ledger_eventdata SET data = %s", b"{}")
    assert len(queries.check_run_chain(run_id).problems) == 3


def test_an_edit_of_the_governance_log_is_found(db: Database) -> None:
    journal()
    assert queries.check_governance_chain().problems == ()
    _without_triggers(db, "UPDATE ledger_governanceevent SET actor = %s", "nobody")
    assert queries.check_governance_chain().problems == ("event 0: was changed after it was written",)


def _without_triggers(db: Database, statement: str, value: str | int | bytes) -> None:
    tables = ("ledger_event", "ledger_eventdata", "ledger_governanceevent")
    with connection.cursor() as cursor:
        for table in tables:
            if db.engine == "sqlite":
                cursor.execute(f"DROP TRIGGER {table}_no_update")
            else:
                cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER {table}_no_update")
        cursor.execute(statement, [value])


CHANGES = {
    "UPDATE ledger_step SET state = 'compensated'": "step 0: the row says compensated, its events say succeeded",
    "UPDATE ledger_step SET is_disputed = true": "step 0: the row says disputed, its events say not disputed",
    "UPDATE ledger_step SET number = 7": "step 7: it has a row and no events",
}


@pytest.mark.parametrize("change", CHANGES)
def test_row_that_its_events_contradict_is_named(db: Database, change: str) -> None:
    run_id = journal()
    with connection.cursor() as cursor:
        cursor.execute(change)
    assert CHANGES[change] in queries.check_run_chain(run_id).problems


def test_row_that_is_gone_is_named(db: Database) -> None:
    run_id = journal()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM ledger_undohandle")
        cursor.execute("DELETE FROM ledger_step")
    assert queries.check_run_chain(run_id).problems == ("step 0: it has no row, its events say succeeded",)
