"""The course of one call without anybody who does its acts: what is asked for next, whatever the last act came to."""

import sys
from dataclasses import replace
from typing import Any

import pytest

from approvals.core.before import BeforeAnswer
from approvals.core.errors import BeforeRequired
from approvals.operations.calls import Begun
from gateway.operations.conversation import (
    Act,
    Begin,
    CallEnded,
    CallerGaveUp,
    CallRequest,
    CallResult,
    Complete,
    Conversation,
    Read,
    Send,
    Wait,
)
from ledger.core.handles import Handle
from ledger.core.statuses import ReadBack, SettledBy, StepState
from ledger.core.values import StepRecord
from manifests_registry.core.snapshot import Snapshot
from reversi_sdk.errors import ToolError
from tests.approvals.factories import ARGS, NOW, PRINCIPAL
from tests.gateway.factories import SteppingClock
from tests.gateway.operations.test_calls import harmless
from tests.manifests_registry.factories import shop

REQUEST = CallRequest(run_id="run_1", principal=PRINCIPAL, tool="shop.order", args=ARGS)
READ = Read("shop.get", {"item": "book"})
LOST = "the outcome of step 3 of run run_1 could not be recorded: full"


def make_step(**fields: Any) -> StepRecord:
    usual: dict[str, Any] = {
        "run_id": "run_1",
        "number": 3,
        "tool": "shop.order",
        "state": StepState.INTENDED,
        "effect": "reversible",
        "upstream": "shop",
        "manifest_checksum": "c" * 64,
        "snapshot": {},
        "args_digest": "d" * 64,
        "summary": "order a book",
        "depends_on": (),
        "requires_steps": (),
        "idempotency_key": None,
        "timeout_ms": 60_000,
        "observed_by": "gateway",
        "settled_by": None,
        "error": None,
        "unrecoverable": None,
        "read_back": ReadBack.NOT_DECLARED,
        "is_disputed": False,
        "is_by_hand": False,
        "is_undo_outcome_unknown": False,
        "is_contract_rejected": False,
        "intended_at": NOW,
        "settled_at": None,
        "handle": Handle({}),
    }
    return StepRecord(**{**usual, **fields})


def make_begun(*, snapshot: Snapshot | None = None) -> Begun:
    entry = (shop() if snapshot is None else snapshot).get("shop.order")
    assert entry is not None
    return Begun(
        step=make_step(),
        manifest=entry.manifest,
        args=ARGS,
        idempotency_key="k1",
        timeout_ms=60_000,
        notes=("observed",),
        violations=(),
        actor=PRINCIPAL,
        redacted=(),
    )


BEGUN = make_begun()


class Course:
    """A conversation that is told the answers one after the other; an exception is what an act raised."""

    def __init__(self, *answers: Any) -> None:
        self.acts: list[Act] = []
        self._conversation = Conversation(REQUEST, clock=SteppingClock())
        for answer in answers:
            act = self._conversation.act
            assert act is not None
            self.acts.append(act)
            if isinstance(answer, BaseException):
                self._conversation.fail(answer)
            else:
                self._conversation.answer(answer)

    @property
    def next(self) -> Act | None:
        return self._conversation.act

    @property
    def ended(self) -> CallResult | CallEnded:
        return self._conversation.ended

    @property
    def complete(self) -> Complete:
        assert isinstance(self.next, Complete)
        return self.next


def settled(state: StepState) -> StepRecord:
    return make_step(state=state, settled_by=SettledBy.CALLER, settled_at=NOW)


def test_conversation_begins_sends_and_completes() -> None:
    step = settled(StepState.SUCCEEDED)

    course = Course(BEGUN, {"id": "o1"}, step)

    assert course.acts == [
        Begin(REQUEST),
        Send(BEGUN, dict(ARGS), "k1"),
        Complete(BEGUN, StepState.SUCCEEDED, {"id": "o1"}),
    ]
    assert course.next is None
    assert course.ended == CallResult(step, {"id": "o1"}, "k1", ("observed",), (), BEGUN.manifest)


def test_conversation_reads_before_and_after_where_it_must() -> None:
    course = Course(BeforeRequired(READ.tool, READ.arguments), {"price": 7}, BEGUN, {"id": "o1"}, {"price": 9})

    assert course.acts[1:3] == [READ, Begin(REQUEST, BeforeAnswer(value={"price": 7}))]
    assert course.acts[4] == READ
    assert course.complete == Complete(BEGUN, StepState.SUCCEEDED, {"id": "o1"}, after=BeforeAnswer(value={"price": 9}))


def test_conversation_goes_on_with_what_a_read_raised() -> None:
    course = Course(BeforeRequired(READ.tool, READ.arguments), ToolError("gone"), BEGUN, None, ValueError())

    assert course.acts[2] == Begin(REQUEST, BeforeAnswer(error="gone"))
    assert course.complete.after == BeforeAnswer(error="ValueError")


def test_conversation_ends_with_what_beginning_it_raised() -> None:
    with pytest.raises(ToolError, match="no such run"):
        Course(ToolError("no such run"))


def test_conversation_that_is_interrupted_in_the_read_before_has_no_step() -> None:
    with pytest.raises(KeyboardInterrupt):
        Course(BeforeRequired(READ.tool, READ.arguments), KeyboardInterrupt())


def test_conversation_that_is_interrupted_in_the_read_after_records_the_success_and_raises_on() -> None:
    interruption = KeyboardInterrupt()

    course = Course(BeforeRequired(READ.tool, READ.arguments), 7, BEGUN, {"id": "o1"}, interruption)
    assert (course.complete.state, course.complete.result) == (StepState.SUCCEEDED, {"id": "o1"})

    course = Course(
        BeforeRequired(READ.tool, READ.arguments), 7, BEGUN, {"id": "o1"}, interruption, settled(StepState.SUCCEEDED)
    )
    assert isinstance(course.ended, CallEnded)
    assert course.ended.error is interruption


ENDINGS: dict[str, tuple[BaseException, StepState, str]] = {
    "declined": (ToolError("card declined"), StepState.FAILED, "card declined"),
    "end of an iterator": (StopIteration("none left"), StepState.FAILED, "StopIteration: none left"),
    "timed out": (TimeoutError("60 s"), StepState.UNCERTAIN, "TimeoutError: 60 s"),
    "interrupted": (KeyboardInterrupt(), StepState.UNCERTAIN, "KeyboardInterrupt"),
}


@pytest.mark.parametrize("case", ENDINGS)
def test_conversation_records_what_a_send_raised_and_gives_it_back(case: str) -> None:
    error, state, text = ENDINGS[case]

    assert Course(BEGUN, error).complete == Complete(BEGUN, state, error=text)

    ended = Course(BEGUN, error, settled(state)).ended
    assert isinstance(ended, CallEnded)
    assert (ended.error, ended.step, ended.idempotency_key) == (error, settled(state), "k1")
    assert ended.notes == ("observed", f"step 3 of run run_1 is {state}")


GIVEN_UP = {
    True: (StepState.UNCERTAIN, "the caller gave up"),
    False: (StepState.FAILED, "not sent: the caller gave up"),
}


@pytest.mark.parametrize("was_sent", GIVEN_UP)
def test_conversation_whose_caller_gave_up_records_what_is_known(was_sent: bool) -> None:
    state, text = GIVEN_UP[was_sent]
    interruption = KeyboardInterrupt()
    gave_up = CallerGaveUp(interruption, was_sent=was_sent)

    assert Course(BEGUN, gave_up).complete == Complete(BEGUN, state, error=text)

    ended = Course(BEGUN, gave_up, settled(state)).ended
    assert isinstance(ended, CallEnded)
    assert ended.error is interruption


def test_conversation_notes_a_success_that_could_not_be_recorded() -> None:
    ended = Course(BEGUN, {"id": "o1"}, ToolError("full")).ended

    assert ended == CallResult(BEGUN.step, {"id": "o1"}, "k1", ("observed", LOST), (), BEGUN.manifest)


def test_conversation_notes_a_success_that_was_not_recorded_for_a_reason_nobody_thought_of() -> None:
    assert isinstance(Course(BEGUN, {"id": "o1"}, KeyError("head")).ended, CallResult)


def test_conversation_prefers_the_error_of_the_tool_to_that_of_the_journal() -> None:
    declined = ToolError("declined")

    ended = Course(BEGUN, declined, ToolError("full")).ended

    assert isinstance(ended, CallEnded)
    assert (ended.error, ended.step, ended.notes) == (declined, BEGUN.step, ("observed", LOST))
    assert declined.__notes__ == [LOST]


def test_conversation_that_is_interrupted_while_it_records_raises_the_interruption() -> None:
    with pytest.raises(KeyboardInterrupt):
        Course(BEGUN, {"id": "o1"}, KeyboardInterrupt())


HARMLESS = make_begun(snapshot=harmless())
READ_ONLY = make_begun(snapshot=harmless("read_only"))


def test_conversation_waits_between_sends_that_may_be_repeated() -> None:
    course = Course(HARMLESS, TimeoutError(), None, ConnectionResetError(), None, {"id": "o1"})

    assert [type(act) for act in course.acts] == [Begin, Send, Wait, Send, Wait, Send]
    assert [act.ms for act in course.acts if isinstance(act, Wait)] == [100, 200]
    assert course.complete.state is StepState.SUCCEEDED


def test_conversation_gives_every_send_arguments_of_its_own() -> None:
    course = Course(HARMLESS, TimeoutError(), None)

    first, second = course.acts[1], course.next
    assert isinstance(first, Send)
    assert isinstance(second, Send)
    assert first.arguments == second.arguments == ARGS
    assert first.arguments is not second.arguments


DOUBTS: dict[str, tuple[Begun, list[Any], StepState, str]] = {
    "refused after a lost answer": (HARMLESS, [TimeoutError(), None, ToolError("no")], StepState.UNCERTAIN, "no"),
    "refused after a lost read": (READ_ONLY, [TimeoutError(), None, ToolError("no")], StepState.FAILED, "no"),
    "given up after a lost answer": (
        HARMLESS,
        [TimeoutError(), KeyboardInterrupt()],
        StepState.UNCERTAIN,
        "not sent again: the caller gave up",
    ),
    "not sent after a lost answer": (
        HARMLESS,
        [TimeoutError(), None, CallerGaveUp(KeyboardInterrupt(), was_sent=False)],
        StepState.UNCERTAIN,
        "not sent: the caller gave up",
    ),
}


@pytest.mark.parametrize("case", DOUBTS)
def test_conversation_stays_in_doubt_once_an_answer_was_lost(case: str) -> None:
    begun, answers, state, text = DOUBTS[case]

    assert Course(begun, *answers).complete == Complete(begun, state, error=text)


def test_conversation_repeats_nothing_when_no_time_is_left() -> None:
    step = replace(HARMLESS.step, intended_at=NOW.replace(hour=11))

    assert Course(replace(HARMLESS, step=step), TimeoutError()).complete.state is StepState.UNCERTAIN


def test_conversation_has_no_ending_while_an_act_is_left() -> None:
    with pytest.raises(RuntimeError, match="goes on"):
        _ = Course(BEGUN).ended


def test_conversation_that_is_dropped_asks_for_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    complaints: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    course = Course(BEGUN)

    del course

    assert complaints == []
