from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from django.db import connection

from ledger import queries
from tests.databases import Database
from tests.ledger.factories import intend, make_run, settle

WRITERS, CALLS = 6, 5


def test_writers_of_one_run_share_its_chain_without_a_gap(db: Database) -> None:
    run = make_run()
    barrier = Barrier(WRITERS)

    def write(_: int) -> None:
        barrier.wait()
        for _ in range(CALLS):
            settle(run_id=run.id, number=intend(run_id=run.id).number)
        connection.close()

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))
    assert [step.number for step in queries.list_steps(run.id)] == list(range(WRITERS * CALLS))
    report = queries.check_run_chain(run.id)
    assert (report.count, report.problems) == (1 + 2 * WRITERS * CALLS, ())
