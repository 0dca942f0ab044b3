"""What a call costs the store: two commits and a fixed number of statements, whatever stands already."""

import sys
from collections import Counter
from collections.abc import Sequence

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from manifests_registry.core.snapshot import Snapshot
from tests.approvals.factories import make_run
from tests.databases import Database
from tests.gateway.factories import Tool, make_call
from tests.manifests_registry.factories import CANCEL, ORDER, READ, make_snapshot

# Begin: run, halts, event, its data, head, step, handle. Complete: the step twice with its handle's digest, then run,
# step, event, its data, head, handle, step. Beside them only what opens, nests and ends the two transactions.
STATEMENTS = 18
MANY = 2_000
LATE = 200

Statements = Sequence[str]


def statements_of_a_call(run_id: str, snapshot: Snapshot) -> Statements:
    with CaptureQueriesContext(connection) as captured:
        make_call(run_id=run_id, execute=Tool({"id": "o1"}), snapshot=snapshot)
    return [query["sql"] for query in captured.captured_queries]


def shape(statements: Statements) -> Counter[str]:
    """Count statements by their first words, without names of savepoints and without values."""
    return Counter(statement.split("SAVEPOINT")[0][:40] for statement in statements)


def is_work(statement: str) -> bool:
    return not statement.startswith(("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE"))


def shop_with(number: int) -> Snapshot:
    return make_snapshot(READ, CANCEL, ORDER, *({"tool": f"other.tool{each}"} for each in range(number)))


def test_call_costs_the_same_early_and_late_with_few_and_many_manifests(
    db: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    run, few, many = make_run(), shop_with(0), shop_with(MANY)
    statements_of_a_call(run.id, few)

    early = statements_of_a_call(run.id, few)
    for _ in range(LATE - 3):
        make_call(run_id=run.id, execute=Tool({"id": "o1"}), snapshot=few)
    late = statements_of_a_call(run.id, few)
    among_many = statements_of_a_call(run.id, many)

    with capsys.disabled():
        sys.stdout.write(f"\n{db.engine}: {sum(map(is_work, early))} statements, {_commits(early)} commits a call\n")
    assert shape(early) == shape(late) == shape(among_many)
    assert _commits(early) == 2
    assert sum(map(is_work, early)) == STATEMENTS


def _commits(statements: Statements) -> int:
    return sum(statement.startswith("COMMIT") for statement in statements)
