"""The grants that docs/operations.md gives are what the processes need, and not what would undo the journal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest
from django.db import connection

from ledger.core.statuses import StepState
from ledger.operations.governance import record_act
from ledger.queries import check_run_chain, list_steps
from reversi_site.kit.transactions import durable
from reversi_site.schedules import enqueue_due_jobs, ensure_schedules, run_scheduled_job
from reversi_site.store import pending_migrations
from tests.databases import Database, in_use
from tests.ledger.factories import NOW, make_run, make_step
from tests.postgres import REPOSITORY

OPERATIONS = REPOSITORY / "docs" / "operations.md"
ROLE = "reversi_app"
REFUSED = psycopg.errors.InsufficientPrivilege


def documented_grants() -> str:
    found = re.search(r"^```sql\n(.*?)^```$", OPERATIONS.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found
    return found.group(1)


@pytest.fixture
def app_db(postgres_db: Database) -> Iterator[Database]:
    """The database as the application's role sees it."""
    name = urlsplit(postgres_db.url).path.removeprefix("/")
    role = f"{ROLE}_{name}"
    owner = postgres_db.raw()
    owner.execute(f"CREATE ROLE {role} LOGIN")
    owner.execute(documented_grants().replace(ROLE, role))
    url = re.sub(r"//[^@]*@", f"//{role}@", postgres_db.url)
    with in_use(Database("postgres", url)) as database:
        yield database
    owner = postgres_db.raw()
    owner.execute(f"DROP OWNED BY {role}")
    owner.execute(f"DROP ROLE {role}")
    postgres_db.close_raw()


def test_application_role_can_keep_a_journal(app_db: Database) -> None:
    run = make_run()
    step = make_step(run_id=run.id)
    with durable():
        record_act(kind="halt_added", actor="operator", data={}, now=NOW)

    assert [found.state for found in list_steps(run.id)] == [StepState.SUCCEEDED] == [step.state]
    assert check_run_chain(run.id).problems == ()


def test_application_role_can_work_on_schedule(app_db: Database) -> None:
    ensure_schedules()

    jobs = enqueue_due_jobs()
    run_scheduled_job(job="heartbeat", now=NOW)

    assert jobs
    assert pending_migrations() == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger_event SET actor = 'somebody else'",
        "DELETE FROM ledger_event",
        "TRUNCATE ledger_event CASCADE",
        "DROP TRIGGER ledger_event_no_update ON ledger_event",
        "ALTER TABLE ledger_event DISABLE TRIGGER ALL",
        "DROP TABLE ledger_eventdata",
        "UPDATE ledger_eventdata SET data = ''",
        "DELETE FROM ledger_governanceevent",
        "UPDATE manifests_registry_manifestdocument SET payload = ''",
        "DELETE FROM ledger_step",
        "CREATE OR REPLACE FUNCTION reversi_refuse_change() RETURNS trigger LANGUAGE plpgsql AS ''",
        "SET session_replication_role = replica",
        "DELETE FROM django_migrations",
    ],
)
def test_application_role_cannot_undo_the_journal(app_db: Database, statement: str) -> None:
    with pytest.raises(REFUSED):
        app_db.raw().execute(statement)


def test_application_role_owns_nothing(app_db: Database) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_class WHERE relowner = (SELECT oid FROM pg_roles WHERE rolname = current_user)"
        )

        assert cursor.fetchone() == (0,)
