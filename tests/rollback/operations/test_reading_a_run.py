"""What planning makes of a run whose documents, keys or salt are not what they were."""

from __future__ import annotations

import pytest

from ledger.core.errors import RunNotFound
from ledger.models import RunSalt, UndoHandle
from ledger.operations.journal import lock_run
from ledger.operations.steps import record_intent
from manifests_registry.models import ManifestDocument
from reversi_site.kit.transactions import durable
from rollback.queries import get_plan, get_report
from tests.ledger.factories import make_intent, settle
from tests.manifests_registry.factories import make_entry
from tests.rollback.downstream import Downstream
from tests.rollback.factories import make_manifest
from tests.rollback.journal import RUN, START, make_run, order, roll_back, shop

pytestmark = pytest.mark.usefixtures("db")


def record(checksum: str) -> None:
    with durable():
        intent = make_intent(tool="shop.order", manifest_checksum=checksum, snapshot={"shop.order": checksum})
        number = record_intent(run=lock_run(RUN), intent=intent, actor="agent", now=START).number
    settle(run_id=RUN, number=number)


def test_an_altered_document_hides_no_other_step() -> None:
    altered = make_entry(tool="shop.order", description="altered")
    make_run()
    order(downstream=Downstream(), snapshot=shop())
    ManifestDocument.objects.create(checksum=altered.checksum, payload=b"{}")
    record(altered.checksum)
    record("f" * 64)

    plan = get_plan(run_id=RUN, now=START)

    assert [(action.step, action.kind.value) for action in plan.actions] == [
        (2, "unmanifested"),
        (1, "unmanifested"),
        (0, "compensate"),
    ]
    assert "missing or was altered" in (plan.actions[1].reason or "")


def test_a_purged_run_can_be_planned_and_rolled_back() -> None:
    downstream = Downstream()
    make_run()
    order(downstream=downstream, snapshot=shop())
    UndoHandle.objects.all().delete()
    RunSalt.objects.all().delete()

    plan = get_plan(run_id=RUN, now=START)
    report = roll_back(downstream=downstream)

    assert (plan.actions[0].kind, plan.actions[0].reason) == ("unrecoverable", "the undo handle was purged")
    assert report.to_json()["unrecoverable"] == [0]
    assert downstream.requests == []


def test_a_tool_absent_from_the_snapshot_may_be_described_and_no_other() -> None:
    downstream = Downstream()
    make_run()
    order(downstream=downstream, snapshot=shop())
    described = {"shop.cancel": make_manifest(tool="shop.cancel"), "shop.order": make_manifest(tool="shop.order")}

    plan = get_plan(run_id=RUN, now=START, described=described)

    assert plan.digest == get_plan(run_id=RUN, now=START).digest


def test_a_run_that_does_not_exist_is_not_found() -> None:
    with pytest.raises(RunNotFound):
        get_plan(run_id="run_none", now=START)
    with pytest.raises(RunNotFound):
        get_report(run_id="run_none", now=START)
