"""The rules of the pages as values: words, colours, rows of a timeline, ways to settle."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

import pytest
from django.http import HttpResponse, QueryDict, StreamingHttpResponse
from django.test import RequestFactory

from approvals.core.requests import Decision, RequestState
from ledger.core.chain import timestamp
from ledger.core.statuses import Mode, ReadBack, RunState, StepState
from ledger.core.values import EventRecord
from reversi_site.console.frame import environment_tone, worker_state
from reversi_site.console.paging import as_query, read_place
from reversi_site.console.reporting import show_report
from reversi_site.console.security import HEADER, ContentSecurityPolicy, SteeringMadeVisible, without_steering
from reversi_site.console.settling import ways_to_settle
from reversi_site.console.timeline import HappeningRow, StepRow, plan_counts, timeline_of
from reversi_site.console.words import EVENT_TEXTS, TONES, ago, event_text, residue_of, step_numbers
from reversi_site.kit.keyset import Place
from rollback.core.actions import Kind
from rollback.core.jobs import JobState
from rollback.core.report import Bucket
from rollback.core.steps import PlanStep
from tests.postgres import REPOSITORY
from tests.rollback.factories import make_step, plan_of, report_of, undoable

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SHOWN: tuple[type[StrEnum], ...] = (StepState, RunState, Mode, ReadBack, Kind, Bucket, JobState, RequestState, Decision)


def values(enums: Iterable[type[StrEnum]]) -> set[str]:
    return {member.value for enum in enums for member in enum}


def test_every_status_has_a_colour() -> None:
    assert values(SHOWN) - set(TONES) == set()


def test_every_colour_is_drawn() -> None:
    sheet = (REPOSITORY / "reversi_site/console/static/reversi/parts.css").read_text(encoding="utf-8")

    # The quiet one is what a chip is without a colour.
    assert {tone for tone in TONES.values() if f".chip-{tone} " not in sheet} <= {"quiet"}


def test_every_event_of_the_journal_has_a_text() -> None:
    section = (REPOSITORY / "ledger/README.md").read_text(encoding="utf-8").partition("\n## Events\n")[2]
    kinds = set(re.findall(r"^\| `([a-z_]+)` \|", section.partition("\n## ")[0], re.MULTILINE))

    assert kinds - set(EVENT_TEXTS) == set()
    assert event_text("a_new_kind") == "A new kind"


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ((), ""),
        ((3,), "3"),
        ((5, 3), "3, 5"),
        ((1, 2), "1, 2"),
        ((4, 2, 3), "2 to 4"),
        ((0, 1, 2, 7, 9), "0 to 2, 7, 9"),
    ],
)
def test_step_numbers_are_told_in_stretches(steps: tuple[int, ...], told: str) -> None:
    assert step_numbers(steps) == told


def test_residue_is_told_once() -> None:
    assert residue_of([(2, ("mail", "log")), (1, ("mail",))]) == [("mail", [2, 1]), ("log", [2])]


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "now"),
        (5, "5 s ago"),
        (59, "59 s ago"),
        (61, "1 min ago"),
        (3600, "60 min ago"),
        (2 * 3600, "2 h ago"),
        (47 * 3600, "1 d ago"),
        (9 * 86400, "9 d ago"),
        (-90, "in 1 min"),
    ],
)
def test_times_are_told_by_their_distance(seconds: int, told: str) -> None:
    assert ago(NOW, NOW + timedelta(seconds=seconds)) == told


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\n\ttext\r\n", "plain\n\ttext\r\n"),
        ("Größe – 数 📊", "Größe – 数 📊"),
        ("a\u202egnp", "a\\u{202e}gnp"),
        ("\x00\x1b[1m", "\\u{0}\\u{1b}[1m"),
        ("a\u200bb\u2028c\ufeff", "a\\u{200b}b\\u{2028}c\\u{feff}"),
    ],
)
def test_steering_characters_are_made_visible(text: str, shown: str) -> None:
    assert without_steering(text) == shown


def test_only_pages_are_changed() -> None:
    request = RequestFactory().get("/")
    text = HttpResponse("a\u202eb", content_type="text/plain")
    stream = StreamingHttpResponse(iter([b"x"]), content_type="text/html")

    assert SteeringMadeVisible(lambda _: text)(request) is text
    assert text.content.decode() == "a\u202eb"
    assert SteeringMadeVisible(lambda _: stream)(request) is stream


def test_a_view_may_have_a_policy_of_its_own() -> None:
    answer = HttpResponse(headers={HEADER: "default-src 'none'"})

    assert ContentSecurityPolicy(lambda _: answer)(RequestFactory().get("/")).headers[HEADER] == "default-src 'none'"


@pytest.mark.parametrize(
    ("age_ms", "is_alive", "told"),
    [
        (None, False, "No worker has been seen yet"),
        (30_000, True, "Worker seen 30 s ago"),
        (-5, True, "Worker seen 0 s ago"),
        (4 * 60_000, False, "No worker for 4 min"),
    ],
)
def test_workers_are_told_by_their_last_sign_of_life(age_ms: int | None, is_alive: bool, told: str) -> None:
    state = worker_state(age_ms)

    assert (state.is_alive, state.words) == (is_alive, told)


@pytest.mark.parametrize(
    ("name", "tone"),
    [("production", "bad"), ("Live-EU", "bad"), ("staging", "warn"), ("local", "quiet"), ("", "quiet")],
)
def test_deployments_are_as_loud_as_they_are_dangerous(name: str, tone: str) -> None:
    assert environment_tone(name) == tone


def test_places_survive_their_address() -> None:
    place = Place((NOW, "run_a&b"), is_backward=True)
    query = as_query(place, {"q": "x y"})
    assert query is not None

    found = read_place(QueryDict(query), lambda parts: (datetime.fromisoformat(parts[0]), parts[1]))

    assert found == place
    assert QueryDict(query)["q"] == "x y"
    assert as_query(None, {}) is None


@pytest.mark.parametrize("query", ["", "after=", "after=x", "after=1", 'after=["x"]', 'before=["no date", "run"]'])
def test_what_is_no_place_is_the_beginning(query: str) -> None:
    assert read_place(QueryDict(query), lambda parts: (datetime.fromisoformat(parts[0]), parts[1])) is None


def steps_of(count: int) -> list[PlanStep]:
    times = [NOW + timedelta(minutes=number) for number in range(count)]
    return [make_step(number=number, manifest=undoable(), intended_at=at) for number, at in enumerate(times)]


def happened(kind: str, at: datetime, **data: object) -> EventRecord:
    return EventRecord("run_v", 0, kind, timestamp(at), "somebody", None, None, "", "", data)


def test_a_timeline_is_in_order_and_says_what_was_blocked() -> None:
    steps = steps_of(2)
    violations = [{"code": "halted", "message": "kill switch: fire"}, {"code": "permission", "message": "not in scope"}]
    events = [
        happened("opened", NOW - timedelta(minutes=1)),
        happened("blocked", NOW + timedelta(seconds=30), tool="shop.pay", violations=violations),
        happened("rollback_finished", NOW + timedelta(hours=1), complete=False),
        happened("blocked", NOW + timedelta(hours=2)),
    ]

    rows = timeline_of([step.record for step in steps], events, plan_of(*steps), first=0, size=10)

    told = [row.step.number if isinstance(row, StepRow) else (row.text, *row.details) for row in rows]
    assert told == [
        ("Run opened",),
        0,
        ("Call blocked", "shop.pay", "kill switch: fire", "not in scope"),
        1,
        ("Work on the run ended", "not complete"),
        ("Call blocked", "purged"),
    ]


def test_a_piece_of_a_timeline_holds_what_happened_in_it() -> None:
    steps = [
        make_step(number=number, manifest=undoable(), intended_at=NOW + timedelta(minutes=number))
        for number in range(3)
    ]
    events = [happened("opened", NOW - timedelta(minutes=1)), happened("closed", NOW + timedelta(hours=1))]
    records, plan = [step.record for step in steps], plan_of(*steps)

    def kinds(first: int) -> list[object]:
        rows = timeline_of(records, events, plan, first=first, size=1)
        return [row.event.kind if isinstance(row, HappeningRow) else row.step.number for row in rows]

    assert [kinds(first) for first in range(3)] == [["opened", 0], [1], [2, "closed"]]


def test_a_plan_is_counted_with_what_will_be_done_first() -> None:
    plan = plan_of(
        make_step(number=0, manifest=undoable()),
        make_step(number=1, manifest=None),
        make_step(number=2, manifest=undoable(), state=StepState.UNCERTAIN),
        make_step(number=3, manifest=undoable(undo={"requires_approval": True})),
        make_step(number=4, manifest=undoable(), state=StepState.FAILED),
        can_run=lambda tool, upstream: True,
    )

    assert [(text, count) for text, _, count in plan_counts(plan)] == [
        ("will be undone", 1),
        ("needs an approval", 1),
        ("must be settled first", 1),
        ("effect unknown", 1),
        ("needs no undo", 1),
    ]


@pytest.mark.parametrize("state", StepState)
@pytest.mark.parametrize("is_disputed", [False, True])
@pytest.mark.parametrize("kind", [Kind.COMPENSATE, Kind.UNRECOVERABLE, Kind.UNMANIFESTED])
def test_ways_to_settle_are_those_that_the_journal_takes(state: StepState, is_disputed: bool, kind: Kind) -> None:
    step = make_step(manifest=undoable(), state=state, is_disputed=is_disputed).record
    by_hand = {"compensated"} if kind is not Kind.COMPENSATE else set()
    overruled = {"failed"} if is_disputed else set()
    expected = {
        StepState.INTENDED: {"succeeded", "failed"},
        StepState.UNCERTAIN: {"succeeded", "failed"},
        StepState.SUCCEEDED: ({"succeeded", "failed"} if is_disputed else set()) | by_hand,
        StepState.FAILED: {"succeeded", "failed"} if is_disputed else set(),
        StepState.COMPENSATING: {"compensated"},
        StepState.COMPENSATED: {"compensated"} | overruled if is_disputed else set(),
        StepState.COMPENSATION_FAILED: {"succeeded", "compensated"} | overruled,
    }

    assert {way.status.value for way in ways_to_settle(step, kind)} == expected[state]


def test_a_report_says_how_each_step_stands() -> None:
    undone: dict[str, Any] = {"state": StepState.COMPENSATED, "manifest": undoable()}
    report = report_of(
        make_step(number=0, **undone, is_by_hand=True, read_back=ReadBack.UNVERIFIED),
        make_step(number=1, **undone, read_back=ReadBack.VERIFIED),
        make_step(number=2, manifest=undoable()),
        make_step(number=3, manifest=undoable(), state=StepState.COMPENSATION_FAILED, error="card expired"),
        make_step(number=4, manifest=None, depends_on=(2,)),
    )

    shown = show_report(report, is_of_a_job=True)

    assert [(line.entry.step, line.words, line.how, line.is_for_people) for line in shown.lines] == [
        (3, "not undone", "card expired", True),
        (4, "no manifest", "no manifest: what the call did is unknown", True),
        (2, "blocked by later steps", "later steps stand on it: 4", False),
        (1, "undone", "read back and confirmed", False),
        (0, "undone", "by hand, not read back yet", False),
    ]
    assert (shown.failed, shown.is_verifiable) == ("3", True)
    assert [(words, count) for words, _, count in shown.counts][-1] == ("undone", 2)


@pytest.mark.parametrize(("is_of_a_job", "words"), [(True, "unresolved"), (False, "still standing")])
def test_a_step_that_stands_escaped_a_rollback_only_if_there_was_one(is_of_a_job: bool, words: str) -> None:
    shown = show_report(report_of(make_step(manifest=undoable())), is_of_a_job=is_of_a_job)

    assert [line.words for line in shown.lines] == [words]
