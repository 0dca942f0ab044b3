"""The client's rules without a server: what is repeated, what a caller's function gets, what leaves the process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

import reversi_sdk
from reversi_sdk.client.addresses import address_of
from reversi_sdk.client.delivery import Delivery, Patience
from reversi_sdk.client.effects import Effect, NoAnswer, Pause, Send, World
from reversi_sdk.client.errors import (
    AnswerNotUnderstood,
    Forbidden,
    InConflict,
    NothingThere,
    Refusal,
    RequestRefused,
    ServerBroke,
    ServerBusy,
    ServerUnreachable,
)
from reversi_sdk.client.functions import executing
from reversi_sdk.client.outgoing import ABSENT, sendable
from reversi_sdk.client.routes import following
from reversi_sdk.client.threads import drive
from reversi_sdk.client.wire import Answer, Request, judge
from reversi_sdk.errors import InvalidInput
from tests.postgres import REPOSITORY


@dataclass
class Script:
    """A network that answers as written, and a clock that pauses move."""

    answers: Iterator[Answer | NoAnswer]
    sent: list[Request] = field(default_factory=list)
    pauses: list[int] = field(default_factory=list)

    @property
    def world(self) -> World:
        return World(now_ms=lambda: sum(self.pauses), chance=lambda: 0.0, new_key=lambda: f"key{len(self.sent)}")

    def perform(self, effect: Effect) -> Any:
        match effect:
            case Send(request):
                self.sent.append(request)
                answer = next(self.answers)
                if isinstance(answer, NoAnswer):
                    raise answer
                return answer
            case Pause(ms):
                self.pauses.append(ms)
                return None
            case _:
                raise AssertionError(effect)


def answer(status: int, document: Any = None, **headers: str) -> Answer:
    return Answer(status, headers, b"" if document is None else json.dumps(document).encode())


def deliver(script: Script, request: Request, *, patience: Patience | None = None) -> Answer:
    delivery = Delivery(script.world, patience or Patience())
    return drive(delivery.delivered(request), script.perform)


POST = Request("POST", "/v1/halt", body={"reason": "r"})
IN_FLIGHT = answer(409, {"code": "idempotency_key_in_flight"})
DONE = answer(200, {"id": "halt_1"})


def test_what_is_not_final_is_repeated_with_the_same_key() -> None:
    script = Script(iter([NoAnswer("lost"), answer(503), IN_FLIGHT, answer(429, None, **{"retry-after": "3"}), DONE]))

    assert deliver(script, POST) == DONE
    assert [request.key for request in script.sent] == ["key0"] * 5
    assert script.pauses == [50, 100, 200, 3000]


@pytest.mark.parametrize("status", [400, 403, 404, 409, 422, 500])
def test_what_is_final_is_not_repeated(status: int) -> None:
    script = Script(iter([answer(status, {"code": "x"})]))

    assert deliver(script, POST).status == status
    assert script.pauses == []


def test_repeating_ends() -> None:
    script = Script(iter(lambda: NoAnswer("lost"), None))
    with pytest.raises(ServerUnreachable, match="no answer after"):
        deliver(script, POST, patience=Patience(ordinary_ms=1000))
    assert sum(script.pauses) <= 1000

    busy = Script(iter(lambda: answer(503), None))
    assert deliver(busy, POST, patience=Patience(ordinary_ms=1000)).status == 503


def test_a_look_carries_no_key() -> None:
    script = Script(iter([DONE]))

    deliver(script, Request("GET", "/v1/halts"))

    assert "Idempotency-Key" not in script.sent[0].headers


KINDS: dict[int, type[Refusal]] = {
    400: RequestRefused,
    403: Forbidden,
    404: NothingThere,
    409: InConflict,
    413: RequestRefused,
    429: ServerBusy,
    500: ServerBroke,
    503: ServerBusy,
}


@pytest.mark.parametrize("status", KINDS)
def test_a_problem_is_raised_as_what_a_caller_can_do_about_it(status: int) -> None:
    with pytest.raises(KINDS[status], match="in words") as raised:
        judge(answer(status, {"code": "its_code", "detail": "in words"}))

    assert (type(raised.value), raised.value.code, raised.value.status) == (KINDS[status], "its_code", status)


@pytest.mark.parametrize("strange", [Answer(200, {}, b"<html>"), Answer(200, {}, b"[]"), Answer(302)])
def test_what_does_not_speak_the_api_is_said(strange: Answer) -> None:
    with pytest.raises(AnswerNotUnderstood):
        judge(strange)


def test_a_proxys_own_page_is_a_busy_server() -> None:
    with pytest.raises(ServerBusy):
        judge(Answer(502, {}, b"<html>bad gateway</html>"))


def test_only_the_query_of_the_next_page_is_followed() -> None:
    request = following(Request("GET", "/v1/runs"), "http://elsewhere.example/v1/keys?cursor=a%3D&limit=2")

    assert (request.path, request.params) == ("/v1/runs", (("cursor", "a="), ("limit", "2")))


def _one(args: Any) -> Any:
    return args


def _default(args: Any, timeout: int = 30) -> Any:
    return args, timeout


def _both(args: Any, key: Any) -> Any:
    return args, key


def _other(args: Any, sent: Any) -> Any:
    return args, sent


def _named(args: Any, *, idempotency_key: str | None = None) -> Any:
    return args, idempotency_key


TAKES: dict[str, tuple[Callable[..., Any], Any]] = {
    "nothing": (lambda: "none", "none"),
    "arguments": (_one, {"a": 1}),
    "a default is left alone": (_default, ({"a": 1}, 30)),
    "both": (_both, ({"a": 1}, "k")),
    "both under other names": (_other, ({"a": 1}, "k")),
    "the key by name": (_named, ({"a": 1}, "k")),
    "anything": (lambda *given: given, ({"a": 1}, "k")),
    "bound in part": (partial(_both, key="mine"), ({"a": 1}, "k")),
    "a built-in": (dict, {"a": 1}),
}


@pytest.mark.parametrize("case", TAKES)
def test_an_execute_gets_what_it_takes(case: str) -> None:
    function, expected = TAKES[case]

    assert executing(function).bound({"a": 1}, "k")() == expected


def test_what_cannot_be_called_is_refused_before_anything_is_announced() -> None:
    with pytest.raises(TypeError, match="execute must be a function"):
        executing("print")  # type: ignore[arg-type]


SENT: dict[str, tuple[Any, Any]] = {
    "plain": ({"a": [1, None, "x"]}, {"a": [1, None, "x"]}),
    "left out": ({"a": object(), "b": 1}, {"b": 1}),
    "a gap in a list": ([object(), 1], [None, 1]),
    "tuples and keys": ({1: (2, 3)}, {"1": [2, 3]}),
    "not a number": ({"a": float("inf")}, {}),
    "bytes": (b"x", ABSENT),
}


@pytest.mark.parametrize("case", SENT)
def test_what_is_no_json_is_left_out(case: str) -> None:
    value, expected = SENT[case]

    assert sendable(value) == expected


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://host", "http://", "http://me:secret@host", "http://h/?q=1"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        address_of(url, "rk_a_b")
    assert "secret" not in str(refused.value)


def test_a_key_is_needed_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInput, match="api_key"):
        address_of("http://host", None)
    monkeypatch.setenv("REVERSI_API_KEY", "rk_from_env")

    address = address_of("http://host/", None)

    assert address.headers["Authorization"] == "Bearer rk_from_env"
    assert "rk_from_env" not in repr(address)


def test_every_public_name_can_be_had_and_the_language_needs_no_network_library() -> None:
    assert all(getattr(reversi_sdk, name) is not None for name in reversi_sdk.__all__)
    with pytest.raises(AttributeError):
        _ = reversi_sdk.Nothing
    code = "import sys, reversi_sdk; sys.exit(bool({'requests', 'httpx', 'django'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, check=False).returncode == 0
