"""Many equal calls at once, from several processes: they open one request, and one of them uses it."""

from collections import Counter

from approvals.core.requests import RequestState
from approvals.queries import get_approval, list_approvals
from ledger.queries import check_run_chain, list_steps
from tests.approvals.factories import NOW, make_run
from tests.approvals.people import approve, ask
from tests.approvals.racing import race
from tests.databases import Database


def test_fifty_racing_uses_of_one_approval_pass_once(db: Database) -> None:
    run = make_run()
    approval = approve(approval=ask(run_id=run.id))

    endings = race(db=db, run_id=run.id, processes=5, threads=10)

    counted = Counter(endings)
    assert counted.pop("passed") == 1
    # Those that came too late wait for one and the same new request.
    (second,) = (each.id for each in list_approvals(now=NOW, states=[RequestState.PENDING]))
    assert counted == {second: 49}
    assert second != approval.id
    assert [step.number for step in list_steps(run.id)] == [0]
    used = get_approval(approval.id, now=NOW)
    assert (used.state, used.used_by_step) == (RequestState.USED, 0)
    assert check_run_chain(run.id).problems == ()


def test_racing_first_calls_open_one_request(db: Database) -> None:
    run = make_run()

    endings = race(db=db, run_id=run.id, processes=4, threads=5)

    assert [approval.id for approval in list_approvals(now=NOW)] == list(set(endings))
    assert list_steps(run.id) == []
