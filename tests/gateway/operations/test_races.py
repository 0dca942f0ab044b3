"""Many calls at once, from several processes: one key lets one call pass, and the store takes them all."""

from collections import Counter

from ledger.core.statuses import StepState
from ledger.queries import check_run_chain, list_runs, list_steps
from tests.databases import Database
from tests.gateway.racing import race


def test_two_hundred_racing_calls_with_one_key_pass_once(db: Database) -> None:
    endings = race(db=db, processes=4, threads=10, calls=5, key="o-1")

    assert Counter(endings) == {"passed": 1, "duplicate": 199}
    steps = [step for run in list_runs(limit=100) for step in list_steps(run.id)]
    assert [step.state for step in steps] == [StepState.SUCCEEDED]


def test_fifty_runs_at_once_meet_no_lock(db: Database) -> None:
    endings = race(db=db, processes=5, threads=10, calls=4, key=None)

    assert Counter(endings) == {"passed": 200}
    runs = list_runs(limit=100)
    assert len(runs) == 50
    assert all(check_run_chain(run.id).problems == () for run in runs)
    assert all([step.number for step in list_steps(run.id)] == [0, 1, 2, 3] for run in runs)
