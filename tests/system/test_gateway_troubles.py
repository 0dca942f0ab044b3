"""A gateway before a server that misbehaves: clear answers for the agent, the truth in the ledger, and life goes on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from ledger.core.statuses import StepState
from ledger.queries import list_steps
from tests.databases import Database
from tests.system.gateways import environment, hostile_upstream, through_gateway, write_manifests
from tests.system.waiting import wait_until

TOOLS = (
    "fine", "garbage", "garbage_flood", "endless_line", "notification_flood", "stderr_flood", "die", "silent", "number",
    "no_result_of_a_call", "half_an_answer_and_die", "close_output", "deaf",
)  # fmt: skip
RUN = "run_troubles"
# How each ends: what the agent reads, and where the step stands.
LOST = ("Nobody knows whether it happened", StepState.UNCERTAIN)
FINE = ("", StepState.SUCCEEDED)
ENDINGS = {
    "die": LOST,
    "half_an_answer_and_die": LOST,
    "close_output": LOST,
    "silent": LOST,
    "number": LOST,
    "no_result_of_a_call": LOST,
    "garbage": LOST,
    "garbage_flood": LOST,
    "endless_line": LOST,
    "notification_flood": FINE,
    "stderr_flood": FINE,
}


def manifests() -> Sequence[dict[str, Any]]:
    undo = {"effect": "reversible", "compensation": {"tool": "fine", "argument_map": {}}}
    slow = {"notification_flood": 30_000, "stderr_flood": 30_000, "garbage_flood": 10_000, "fine": 20_000}
    return [
        {
            "tool": tool,
            "permission": "hostile:call",
            "timeout_ms": slow.get(tool, 1500),
            **({"effect": "idempotent"} if tool == "fine" else undo),
        }
        for tool in TOOLS
    ]


@pytest.mark.timeout(240)
def test_every_trouble_is_answered_and_journaled_as_it_was_and_the_next_call_works(
    db: Database, tmp_path: Path
) -> None:
    flags = ["--manifests", str(write_manifests(tmp_path, manifests())), "--run-id", RUN, *hostile_upstream()]
    answers: list[Any] = []

    async def provoke() -> None:
        async with through_gateway(env=environment(db, tmp_path), folder=tmp_path, flags=flags) as client:
            for tool in ENDINGS:
                answers.append(await client.call_tool(tool, {}))
                answers.append(await client.call_tool("fine", {}))

    anyio.run(provoke)
    steps = list_steps(RUN)

    told = {tool: answer.content[0].text for tool, answer in zip(ENDINGS, answers[::2], strict=True)}
    stands = {step.tool: step.state for step in steps if step.tool != "fine"}
    assert stands == {tool: state for tool, (_, state) in ENDINGS.items()}
    assert [tool for tool, (words, _) in ENDINGS.items() if words not in told[tool]] == []
    assert [answer.is_error for answer in answers[1::2]] == [False] * len(ENDINGS)
    assert {step.state for step in steps if step.tool == "fine"} == {StepState.SUCCEEDED}


@pytest.mark.timeout(120)
def test_a_server_that_hangs_for_good_is_started_again_when_it_shows_no_sign_of_life(
    db: Database, tmp_path: Path
) -> None:
    described = [{**each, "timeout_ms": 1500} for each in manifests()]
    flags = ["--manifests", str(write_manifests(tmp_path, described)), "--run-id", RUN, *hostile_upstream()]

    async def hang() -> list[bool]:
        async with through_gateway(env=environment(db, tmp_path), folder=tmp_path, flags=flags) as client:
            failing = [(await client.call_tool("deaf", {})).is_error]
            while failing[-1] and len(failing) < 6:
                failing.append((await client.call_tool("fine", {})).is_error)
            return failing

    failing = anyio.run(hang)

    *before, last = [step.state for step in list_steps(RUN)]
    assert failing[-1] is False
    assert (set(before), last) == ({StepState.UNCERTAIN}, StepState.SUCCEEDED)


def test_a_server_that_cannot_start_is_sent_nothing_and_nothing_is_uncertain(db: Database, tmp_path: Path) -> None:
    flags = ["--manifests", str(write_manifests(tmp_path, manifests())), "--run-id", RUN]
    flags += hostile_upstream("--start", "exit")

    async def call() -> Any:
        async with through_gateway(env=environment(db, tmp_path), folder=tmp_path, flags=flags) as client:
            return await client.call_tool("fine", {}), await client.call_tool("reversi.run", {})

    answer, ours = anyio.run(call)

    assert answer.is_error is True
    assert "no such database" in answer.content[0].text
    assert ours.is_error is not True
    assert {step.state for step in list_steps(RUN)} <= {StepState.FAILED}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_a_client_that_gives_up_leaves_its_step_uncertain(db: Database, tmp_path: Path, mode: str) -> None:
    calls = tmp_path / "calls"
    described = [{**each, "timeout_ms": 60_000} for each in manifests()]
    flags = ["--manifests", str(write_manifests(tmp_path, described)), "--run-id", RUN]
    flags += hostile_upstream("--calls", str(calls))

    async def give_up() -> None:
        env = environment(db, tmp_path)
        async with through_gateway(env=env, folder=tmp_path, flags=flags, mode=mode) as client:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "silent", {})
                while not (calls.exists() and calls.read_text()):
                    await anyio.sleep(0.01)
                tasks.cancel_scope.cancel()
            # The gateway lives on.
            assert (await client.call_tool("fine", {})).is_error is False

    anyio.run(give_up)

    wait_until(lambda: list_steps(RUN)[0].state is StepState.UNCERTAIN, what="the step is settled", limit_s=10)
    assert [step.state for step in list_steps(RUN)] == [StepState.UNCERTAIN, StepState.SUCCEEDED]


@pytest.mark.timeout(120)
def test_a_client_that_leaves_in_mid_call_leaves_its_step_uncertain(db: Database, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    described = [{**each, "timeout_ms": 60_000} for each in manifests()]
    flags = ["--manifests", str(write_manifests(tmp_path, described)), "--run-id", RUN]
    flags += hostile_upstream("--calls", str(calls))

    async def leave() -> None:
        env = environment(db, tmp_path)
        async with (
            anyio.create_task_group() as tasks,
            through_gateway(env=env, folder=tmp_path, flags=flags) as client,
        ):
            tasks.start_soon(client.call_tool, "silent", {})
            while not (calls.exists() and calls.read_text()):
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()

    anyio.run(leave)

    wait_until(lambda: list_steps(RUN)[0].state is not StepState.INTENDED, what="the step is settled", limit_s=10)
    assert [step.state for step in list_steps(RUN)] == [StepState.UNCERTAIN]
