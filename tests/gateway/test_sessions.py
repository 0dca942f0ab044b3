"""Sessions with upstreams from threads without an event loop, over real processes."""

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.core.upstream_errors import UpstreamUnavailable
from gateway.core.upstream_specs import UpstreamSpec
from gateway.executors import Reached
from gateway.sessions import Session
from tests.postgres import REPOSITORY

WITHIN_S = 30.0


def spec(*arguments: str) -> UpstreamSpec:
    command = (sys.executable, "-m", "tests.gateway.mcp.servers.hostile_stdio", *arguments)
    return UpstreamSpec("hostile", command=command, cwd=REPOSITORY, env=(("PYTHONPATH", str(REPOSITORY)),))


@pytest.fixture
def session() -> Iterator[Session]:
    opened = Session(spec())
    yield opened
    opened.close()


def call(session: Session, tool: str) -> Any:
    return session.ask(lambda reached: reached.call_at("hostile", tool, {}, timeout_ms=20_000), within_s=WITHIN_S)


def pid_of(answer: Any) -> int:
    return int(answer["content"][0]["text"])


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_session_is_kept_between_questions_and_ends_with_its_process(session: Session) -> None:
    first, second = pid_of(call(session, "fine")), pid_of(call(session, "fine"))

    session.close()

    assert first == second
    assert not is_alive(first)


def test_a_session_that_was_closed_opens_again(session: Session) -> None:
    first = pid_of(call(session, "fine"))
    session.close()

    assert pid_of(call(session, "fine")) != first


def test_a_session_that_nobody_uses_ends_by_itself() -> None:
    idle = Session(spec(), idle_s=0.05)
    first = pid_of(call(idle, "fine"))
    for thread in threading.enumerate():
        if thread.name == "upstream hostile":
            thread.join(WITHIN_S)

    assert not is_alive(first)
    assert pid_of(call(idle, "fine")) != first
    idle.close()


def test_many_threads_ask_one_session(session: Session) -> None:
    pids: list[int] = []

    def ask() -> None:
        pids.append(pid_of(call(session, "fine")))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WITHIN_S)

    assert len(pids) == 8
    assert len(set(pids)) == 1


def test_a_server_that_cannot_start_says_why() -> None:
    broken = Session(spec("--start", "exit"))

    with pytest.raises(UpstreamUnavailable, match="no such database"):
        call(broken, "fine")

    broken.close()


def test_what_a_question_raises_is_raised_where_it_was_asked(session: Session) -> None:
    async def ask(_reached: Reached) -> None:
        raise ZeroDivisionError

    question: Callable[[Reached], Any] = ask
    with pytest.raises(ZeroDivisionError):
        session.ask(question, within_s=WITHIN_S)


def test_a_question_without_an_answer_is_given_up_in_time(session: Session) -> None:
    call(session, "fine")

    with pytest.raises(TimeoutError):
        session.ask(
            lambda reached: reached.call_at("hostile", "silent", {}, timeout_ms=60_000),
            within_s=0.05,
        )
