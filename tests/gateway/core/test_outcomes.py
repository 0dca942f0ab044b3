"""What an exception says about the effect of a call, and when a harmless call is repeated."""

from http.client import BadStatusLine, IncompleteRead

import pytest

from gateway.core.outcomes import is_repeatable, outcome_of_error
from gateway.core.retries import waits_ms
from ledger.core.statuses import StepState
from reversi_sdk.errors import EffectUncertainError, ToolError
from tests.manifests_registry.factories import make_entry


class Refused(ToolError):
    def __init__(self, status: int) -> None:
        super().__init__(f"answered {status}")
        self.status = status


def _library_error(module: str, name: str) -> Exception:
    kind = type(name, (OSError,), {"__module__": module})
    return type("Special", (kind,), {})("no answer")  # type: ignore[no-any-return]


FAILED, UNCERTAIN = StepState.FAILED, StepState.UNCERTAIN

ERRORS: dict[str, tuple[BaseException, StepState, bool]] = {
    "uncertain": (EffectUncertainError("502"), UNCERTAIN, True),
    "time-out": (TimeoutError(), UNCERTAIN, True),
    "connection reset": (ConnectionResetError(), UNCERTAIN, True),
    "broken pipe": (BrokenPipeError(), UNCERTAIN, True),
    "half an answer": (IncompleteRead(b""), UNCERTAIN, True),
    "no status": (BadStatusLine(""), UNCERTAIN, True),
    "requests": (_library_error("requests.exceptions", "ConnectionError"), UNCERTAIN, True),
    "httpx": (_library_error("httpx", "TransportError"), UNCERTAIN, True),
    "tool said no": (ToolError("declined"), FAILED, False),
    "tool said 404": (Refused(404), FAILED, False),
    "tool is busy": (Refused(429), FAILED, True),
    "server broke": (Refused(503), FAILED, True),
    "bug": (KeyError("id"), FAILED, False),
    "a group with a lost answer": (ExceptionGroup("", [KeyError("id"), TimeoutError()]), UNCERTAIN, True),
    "a group without one": (ExceptionGroup("", [KeyError("id")]), FAILED, False),
    "no such file": (FileNotFoundError(), FAILED, False),
    "interrupted": (KeyboardInterrupt(), UNCERTAIN, False),
    "exit": (SystemExit(), UNCERTAIN, False),
}


@pytest.mark.parametrize("case", ERRORS)
def test_outcome_of_error(case: str) -> None:
    error, state, repeatable = ERRORS[case]

    assert (outcome_of_error(error), is_repeatable(error)) == (state, repeatable)


RETRY = {"attempts": 4, "base_ms": 100, "max_ms": 250}


@pytest.mark.parametrize("effect", ["read_only", "idempotent"])
def test_waits_grow_up_to_the_longest(effect: str) -> None:
    assert list(waits_ms(make_entry(tool="shop.put", effect=effect, retry=RETRY).manifest)) == [100, 200, 250]


def test_waits_need_a_retry_block() -> None:
    assert list(waits_ms(make_entry(tool="shop.put").manifest)) == []
    assert list(waits_ms(None)) == []
