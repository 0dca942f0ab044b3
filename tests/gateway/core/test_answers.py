"""What an agent reads when a call did not bring its result: each answer says what happened and what to do now."""

import json
from dataclasses import replace
from typing import Any

import pytest

from approvals.core.requests import ApprovalRecord, RequestKind, RequestState
from approvals.core.violations import Code, Violation
from gateway.core.answers import (
    ADVICE,
    approval_required,
    blocked,
    document,
    failure,
    invalid_arguments,
    observed_meta,
    step_meta,
    unknown_tool,
    unsuccessful,
    with_meta,
)
from gateway.core.schemas import Problem
from ledger.core.handles import HandleLost
from ledger.core.statuses import ReadBack, StepState
from ledger.core.values import StepRecord
from tests.approvals.factories import LATER, NOW


def text_of(answer: dict[str, Any]) -> str:
    (content,) = answer["content"]
    assert content["type"] == "text"
    return str(content["text"])


def a_step(*, state: StepState) -> StepRecord:
    return StepRecord(
        run_id="run_1",
        number=3,
        tool="shop.order",
        state=state,
        effect="reversible",
        upstream="shop",
        manifest_checksum=None,
        snapshot={},
        args_digest="",
        summary="",
        depends_on=(),
        requires_steps=(),
        idempotency_key=None,
        timeout_ms=1000,
        observed_by="gateway",
        settled_by=None,
        error=None,
        unrecoverable=None,
        read_back=ReadBack.NOT_DECLARED,
        is_disputed=False,
        is_by_hand=False,
        is_undo_outcome_unknown=False,
        is_contract_rejected=False,
        intended_at=NOW,
        settled_at=None,
        handle=HandleLost("not looked at"),
    )


APPROVAL = ApprovalRecord(
    id="apr_1",
    kind=RequestKind.CALL,
    run_id="run_1",
    step=None,
    tool="shop.order",
    args_digest="d",
    manifest_checksum="c",
    state=RequestState.PENDING,
    roles=("finance",),
    quorum=2,
    deadline_at=LATER,
    use_until=None,
    requested_by="a",
    run_principal="a",
    reason="",
    summary="",
    effect="irreversible",
    arguments=None,
    created_at=NOW,
    answered_at=None,
    used_at=None,
    used_by_step=None,
    denied_reason="",
)


def test_blocked_names_every_violation_and_what_can_be_done() -> None:
    violations = [Violation(Code.HALTED, "kill switch: audit"), Violation(Code.PERMISSION, "permission p is not there")]

    answer = blocked("shop.order", violations)

    assert text_of(answer).splitlines() == [
        "shop.order was blocked and nothing was done:",
        "- kill switch: audit",
        "- permission p is not there",
        ADVICE[Code.HALTED],
        ADVICE[Code.PERMISSION],
    ]
    assert answer["structuredContent"] == {
        "decision": "blocked",
        "violations": [
            {"code": "halted", "message": "kill switch: audit"},
            {"code": "permission", "message": "permission p is not there"},
        ],
    }
    assert answer["isError"] is True


@pytest.mark.parametrize("code", Code)
def test_blocked_has_advice_for_every_violation(code: Code) -> None:
    assert ADVICE[code] in text_of(blocked("t", [Violation(code, "why"), Violation(code, "why else")])).splitlines()


def test_approval_required_says_who_where_and_what_then() -> None:
    answer = approval_required(APPROVAL, "https://undo.example")

    text = text_of(answer)
    assert "apr_1 is pending" in text
    assert "2 people of the role finance: at https://undo.example/approvals/apr_1/" in text
    assert "repeat exactly the same call afterwards; the request ends on 2026-03-01 at 12:00 UTC" in text
    assert answer["structuredContent"] == {"decision": "approval_required", "approval": APPROVAL.to_json()}
    assert answer["isError"] is True


def test_approval_required_without_an_address_still_says_where() -> None:
    text = text_of(approval_required(replace(APPROVAL, quorum=1, roles=()), None))

    assert "one person of the role operator or admin: on the console, under Approvals" in text


UNSUCCESSFUL: dict[StepState, tuple[str, str]] = {
    StepState.FAILED: ("failed", "It was not done; step 3 of run run_1 is failed, and the call may be made again."),
    StepState.UNCERTAIN: (
        "uncertain",
        "Nobody knows whether it happened; step 3 of run run_1 is uncertain. Do not repeat",
    ),
    StepState.INTENDED: (
        "uncertain",
        "Nobody knows whether it happened; step 3 of run run_1 is intended. Do not repeat",
    ),
}


@pytest.mark.parametrize("state", UNSUCCESSFUL)
def test_unsuccessful_says_whether_it_was_done(state: StepState) -> None:
    outcome, words = UNSUCCESSFUL[state]

    answer = unsuccessful(a_step(state=state), "upstream_timeout", "no answer")

    assert text_of(answer).startswith(f"shop.order: no answer\n{words}")
    assert answer["structuredContent"] == {
        "outcome": outcome,
        "step": {"run": "run_1", "step": 3, "tool": "shop.order", "state": state.value},
        "error": {"code": "upstream_timeout", "message": "no answer"},
    }
    assert answer["isError"] is True


def test_unknown_tool_names_what_comes_near() -> None:
    answer = unknown_tool("write_fil", ["write_file", "read_file", "move"])

    assert "Did you mean write_file" in text_of(answer)
    assert answer["structuredContent"]["error"]["near"][0] == "write_file"


def test_unknown_tool_that_is_like_no_other_points_to_the_list() -> None:
    assert "tools/list names the tools" in text_of(unknown_tool("zzz", ["write_file"]))


def test_invalid_arguments_lists_each_problem_with_its_path() -> None:
    answer = invalid_arguments("shop.order", [Problem("a.b", "is no number"), Problem("", "'c' is required")])

    assert text_of(answer).splitlines()[1:3] == ["- a.b: is no number", "- 'c' is required"]
    assert answer["structuredContent"]["error"]["problems"] == [
        {"path": "a.b", "message": "is no number"},
        {"path": "", "message": "'c' is required"},
    ]


def test_failure_has_a_code_and_a_sentence() -> None:
    answer = failure("run_closed", "run run_1 is closed", "Open another one.")

    assert text_of(answer) == "run run_1 is closed\nOpen another one."
    assert answer["structuredContent"] == {"error": {"code": "run_closed", "message": "run run_1 is closed"}}


def test_document_shows_its_body_in_the_text_too() -> None:
    answer = document("The run:", {"run": "run_1"})

    first, second = text_of(answer).splitlines()
    assert (first, json.loads(second), answer["isError"]) == ("The run:", {"run": "run_1"}, False)


def test_meta_is_ours_where_both_have_it_and_theirs_elsewhere() -> None:
    theirs = {"content": [], "_meta": {"effect": "theirs", "x/y": None}, "more": 1}

    merged = with_meta(theirs, {**step_meta(a_step(state=StepState.SUCCEEDED))})

    assert merged == {"content": [], "more": 1, "_meta": {"x/y": None, "reversi/step": {"run": "run_1", "step": 3}}}
    assert theirs["_meta"] == {"effect": "theirs", "x/y": None}


def test_meta_that_nobody_wrote_is_not_there() -> None:
    assert with_meta({"content": []}, observed_meta((), ())) == {"content": []}


def test_observed_meta_tells_notes_and_violations() -> None:
    assert observed_meta(("only observed",), (Violation(Code.NO_MANIFEST, "no manifest"),)) == {
        "reversi/notes": ["only observed"],
        "reversi/violations": [{"code": "no_manifest", "message": "no manifest"}],
    }
