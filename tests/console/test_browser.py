"""What a person does in a browser, with a real worker behind it: no error, no request to anybody else, no barrier."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from approvals.core.requests import RequestState
from approvals.queries import get_approval, list_halts
from ledger.core.statuses import StepState
from ledger.queries import get_step
from tests.console.agents import HOSTILE, ask_to_wire, be_blocked, mixed_run, order, start_run
from tests.console.browsing import CHROMIUM, DESK, FLAGS, PHONE, Watched, deployment, watch
from tests.console.world import BROKEN, World
from tests.databases import Database

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason="no chromium: apt-get install chromium")
RUN = "run_campaign"
PATIENCE_MS = 30_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    # Playwright runs a loop in this thread, beside which Django would refuse every query of the tests.
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        opened = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        yield opened
        opened.close()


@pytest.fixture
def address(browser: Any, sqlite_db: Database, world: World, tmp_path: Path) -> Iterator[str]:
    from tests.console.conftest import add_people, give_passwords

    add_people()
    give_passwords("admin", "operator", "approver")
    with deployment(sqlite_db, world, tmp_path / "up.log") as found:
        yield found


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Any]:
    """Open pages, each in a browser session of its own; at the end none may have complained."""
    opened: list[Watched] = []

    def open_page(**options: Any) -> Watched:
        context = browser.new_context(**{"viewport": DESK, **options})
        context.set_default_timeout(PATIENCE_MS)
        opened.append(watch(context, address))
        return opened[-1]

    yield open_page
    complaints = [complaint for page in opened for complaint in page.complaints]
    for each in opened:
        each.page.context.close()
    assert complaints == []


def test_a_run_is_found_planned_rolled_back_watched_and_settled(visit: Any, world: World) -> None:
    mixed_run(world, principal="agent", run_id=RUN, reason="prepare the campaign")
    operator = visit()
    page = operator.page

    operator.sign_in("operator")
    page.fill("#find", "campaign")
    page.press("#find", "Enter")
    page.click(f"text={RUN}")
    assert "prepare the campaign" in operator.text()
    page.click("text=Plan >> nth=0")
    assert "Not fully reversible." in operator.text()
    assert "the customer got a confirmation mail" in operator.text()
    page.click("text=Roll back this run…")
    assert "What is overwritten" in operator.text()
    page.check("#id_is_read")
    page.click("button:has-text('Roll back 3 steps')")
    page.wait_for_selector("text=Not complete.")
    assert "/jobs/job_" in page.url
    assert "409: the order is locked by the warehouse" in operator.text()
    assert get_step(RUN, 1).state is StepState.COMPENSATED

    page.click("text=Settle step 4 >> nth=0")
    page.check("input[value=succeeded]")
    page.fill("#id_result", '{"id": "shop-order-lamp"}')
    page.fill("#id_note", "it is in the shop's list of orders")
    page.click("button:has-text('Settle step 4')")
    page.wait_for_selector("text=Step 4 is now succeeded.")

    world.put(f"shop-order-{BROKEN}", broken=False)
    page.click("text=Report")
    page.click("text=Retry failed…")
    assert "Roll back steps 7 of this run?" in operator.text()
    page.click("a:has-text('Cancel')")
    page.click("text=Roll back this run…")
    page.check("#id_is_read")
    page.click("button:has-text('Roll back 2 steps')")
    page.wait_for_selector("text=How the steps stand now")
    assert get_step(RUN, 4).state is StepState.COMPENSATED
    assert get_step(RUN, 7).state is StepState.COMPENSATED
    assert operator.refused == set()


def test_a_page_follows_a_job_until_it_ends(visit: Any, world: World) -> None:
    start_run(principal="agent", run_id=RUN)
    for number in range(60):
        order(world, RUN, f"thing{number}", principal="agent")
    operator = visit()
    page = operator.page
    operator.sign_in("operator")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    operator.open(f"runs/{RUN}/rollback/")
    page.check("#id_is_read")
    page.click("button:has-text('Roll back 60 steps')")
    page.wait_for_selector("progress")
    page.wait_for_selector("text=Complete. Nothing is left")

    assert any(url.endswith("/progress.json") for url in asked)
    assert "60 undone" in operator.text()


def test_a_call_is_approved_by_who_may(visit: Any, world: World) -> None:
    start_run(principal="agent", run_id=RUN)
    asked = ask_to_wire(world, RUN, principal="agent")
    approver = visit()

    approver.sign_in("approver")
    approver.page.click("nav.menu >> text=Approvals")
    approver.page.click(f"text={asked.id}")
    assert '"amount": 125000' in approver.text()
    assert "9911-secret" not in approver.page.content()
    approver.page.fill("#id_reason", "as agreed")
    approver.page.click("button:has-text('Approve')")
    approver.page.wait_for_selector("text=You approved the call.")

    assert get_approval(asked.id, now=datetime.now(UTC)).state is RequestState.APPROVED


def test_calls_are_halted_and_let_pass_again(visit: Any, world: World) -> None:
    operator, admin = visit(), visit()
    operator.sign_in("operator")
    operator.page.click("nav.menu >> text=Halts")
    operator.page.fill("#id_reason", "duplicate charges")
    operator.page.fill("#id_tool", "stripe.*")
    operator.page.click("text=Stop calls")
    operator.page.wait_for_selector("text=New calls that match are stopped.")
    assert "Lift" not in operator.text()

    admin.sign_in("admin")
    assert "Some new calls are stopped" in admin.text()
    admin.page.click("text=See halts")
    admin.page.click("button:has-text('Lift')")
    admin.page.wait_for_selector("text=The halt is lifted.")

    assert list_halts() == []
    assert "calls are stopped" not in admin.text()


PAGES = (
    "",
    "runs/",
    f"runs/{RUN}/",
    f"runs/{RUN}/plan/",
    f"runs/{RUN}/rollback/",
    f"runs/{RUN}/report/",
    f"runs/{RUN}/events/?check",
    f"runs/{RUN}/steps/4/",
    f"runs/{RUN}/steps/4/resolve/",
    "approvals/",
    "approvals/{approval}/",
    "halts/",
    "keys/",
    "keys/create/",
    "people/",
    "people/agent/",
    "governance/",
    "records/",
    "records/ledger/step/",
    f"records/ledger/run/{RUN}/change/",
    "password/",
)


# Colours and widths do not depend on each other: two looks cover both of each.
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "options", [{"viewport": DESK}, {"viewport": PHONE, "color_scheme": "dark"}], ids=["desk", "phone, dark"]
)
def test_pages_have_no_barriers_and_fit(visit: Any, world: World, options: dict[str, Any]) -> None:
    from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # it has no types

    mixed_run(world, principal="agent", run_id=RUN, reason=HOSTILE, tenant="a-very-long-name-" * 8)
    be_blocked(world, RUN, "x" * 100, {}, principal="agent")
    start_run(principal="agent", run_id="run_asks")
    approval = ask_to_wire(world, "run_asks", principal="agent", iban="unbroken" * 60).id
    admin, axe, barriers, wide = visit(**options), Axe(), {}, {}

    admin.open("login/")
    barriers["login/"] = serious(axe.run(admin.page).response)
    admin.sign_in("admin")
    for name in PAGES:
        admin.open(name.format(approval=approval))
        assert admin.page.locator("h1").count() == 1, name
        barriers[name] = serious(axe.run(admin.page).response)
        wide[name] = admin.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    assert {name: found for name, found in barriers.items() if found} == {}
    assert {name: pixels for name, pixels in wide.items() if pixels > 0} == {}
    assert admin.refused == set()


def serious(answer: Any) -> list[tuple[str, str]]:
    found = [each for each in answer["violations"] if each["impact"] in ("serious", "critical", "moderate")]
    return [(each["id"], re.sub(r"\s+", " ", each["nodes"][0]["html"])[:200]) for each in found]


def test_everything_works_without_scripts(visit: Any, world: World) -> None:
    start_run(principal="agent", run_id=RUN)
    order(world, RUN, "book", principal="agent")
    operator = visit(java_script_enabled=False)

    operator.sign_in("operator")
    operator.open(f"runs/{RUN}/rollback/")
    operator.page.check("#id_is_read")
    operator.page.click("button:has-text('Roll back 1 step')")
    operator.page.wait_for_selector("text=Complete. Nothing is left")

    assert get_step(RUN, 0).state is StepState.COMPENSATED
