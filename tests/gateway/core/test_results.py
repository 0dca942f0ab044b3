"""What the result of a call says (D15), and what a request without one means (D109)."""

from typing import Any

import pytest

from gateway.core.outcomes import outcome_of_error
from gateway.core.results import NO_WORDS, error_text_of, value_of
from gateway.core.upstream_errors import (
    ToolReported,
    ToolReportedUncertain,
    UnknownTool,
    UpstreamAnswerInvalid,
    UpstreamAnswerLost,
    UpstreamInternalError,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnavailable,
    error_of,
    raise_if_error,
)
from ledger.core.statuses import StepState


def text(*texts: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": each} for each in texts]


IMAGE = {"type": "image", "data": "AAAA", "mimeType": "image/png"}


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ({"structuredContent": {"a": 1}, "content": text("other")}, {"a": 1}),
        ({"structuredContent": {}, "content": text('{"a": 2}')}, {}),
        ({"structuredContent": [1], "content": []}, [1]),
        ({"structuredContent": None, "content": text('{"a": 2}')}, {"a": 2}),
        ({"content": text('{"a": 2}')}, {"a": 2}),
        ({"content": text("[1, 2]")}, [1, 2]),
        ({"content": text("12")}, 12),
        ({"content": text("null")}, None),
        ({"content": text("plain words")}, {"text": "plain words"}),
        ({"content": text("")}, {"text": ""}),
        ({"content": text("[" * 100_000)}, {"text": "[" * 100_000}),
        ({"content": text("one", "two")}, {"content": text("one", "two")}),
        ({"content": [IMAGE]}, {"content": [IMAGE]}),
        ({"content": [IMAGE, *text("one")]}, {"content": [IMAGE, *text("one")]}),
        ({"content": []}, {"content": []}),
        ({}, {"content": []}),
        ({"content": "odd"}, {"content": []}),
        ({"content": [{"type": "text", "text": 1}]}, {"content": [{"type": "text", "text": 1}]}),
    ],
)
def test_value_of_an_answer(answer: dict[str, Any], value: Any) -> None:
    assert value_of(answer) == value


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"content": text("no such file")}, "no such file"),
        ({"content": text("no such file", "at all")}, "no such file\nat all"),
        ({"content": [IMAGE, *text("with a picture")]}, "with a picture"),
        ({"content": [], "structuredContent": {"why": "é"}}, '{"why": "é"}'),
        ({"content": text("  "), "structuredContent": {"why": 1}}, '{"why": 1}'),
        ({"content": [IMAGE]}, NO_WORDS),
        ({}, NO_WORDS),
    ],
)
def test_error_text_of_an_answer(answer: dict[str, Any], words: str) -> None:
    assert error_text_of(answer) == words


@pytest.mark.parametrize("is_error", [False, None, "true", 1])
def test_only_an_error_is_raised(is_error: Any) -> None:
    raise_if_error({"content": text("fine"), "isError": is_error})
    raise_if_error({"content": text("fine")})


@pytest.mark.parametrize(
    ("meta", "kind", "state"),
    [
        ({}, ToolReported, StepState.FAILED),
        ({"_meta": {"reversi/outcome": "failed"}}, ToolReported, StepState.FAILED),
        ({"_meta": "odd"}, ToolReported, StepState.FAILED),
        ({"_meta": {"reversi/outcome": "uncertain"}}, ToolReportedUncertain, StepState.UNCERTAIN),
    ],
)
def test_an_error_that_the_tool_reports_keeps_the_whole_answer(
    meta: dict[str, Any], kind: type[ToolReported | ToolReportedUncertain], state: StepState
) -> None:
    answer = {"content": text("no room"), "isError": True, "x-own": 1, **meta}

    with pytest.raises(kind, match="no room") as raised:
        raise_if_error(answer)

    error: Exception = raised.value
    assert isinstance(error, ToolReported | ToolReportedUncertain)
    assert error.answer == answer
    assert outcome_of_error(error) is state


@pytest.mark.parametrize(
    ("error", "state", "words"),
    [
        (UpstreamUnavailable("u", "is down"), StepState.FAILED, "nothing was sent: the upstream u is down"),
        (UnknownTool("a.b"), StepState.FAILED, "no upstream offers a.b"),
        (UpstreamRefused("u", -32602, "bad"), StepState.FAILED, "bad"),
        (UpstreamRefused("u", -32602, ""), StepState.FAILED, "error -32602"),
        (UpstreamTimeout("u", 1500), StepState.UNCERTAIN, "the upstream u did not answer within 1.5 s"),
        (
            UpstreamAnswerLost("u", "exited with code 3"),
            StepState.UNCERTAIN,
            "the upstream u exited with code 3 before it answered",
        ),
        (
            UpstreamAnswerInvalid("u", "odd"),
            StepState.UNCERTAIN,
            "the upstream u answered, but not as the protocol says: odd",
        ),
        (
            UpstreamInternalError("u", 0, "burst"),
            StepState.UNCERTAIN,
            "the upstream u failed while it worked: burst",
        ),
    ],
)
def test_how_a_request_ends_says_whether_it_was_sent(error: Exception, state: StepState, words: str) -> None:
    assert outcome_of_error(error) is state
    assert str(error) == words


@pytest.mark.parametrize("number", [-32700, -32600, -32601, -32602, -32002, -32020, -32021, -32022, -32042])
def test_refusals_did_nothing(number: int) -> None:
    assert isinstance(error_of("u", number, "no"), UpstreamRefused)


@pytest.mark.parametrize("number", [-32603, -32000, -32001, -32023, -32043, 0, 1, 404])
def test_every_other_error_may_have_done_something(number: int) -> None:
    assert isinstance(error_of("u", number, "no"), UpstreamInternalError)
