"""A server as an upstream: every revision, what goes there and back, giving up, being started again, and leaving
nothing behind.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.core.upstream_errors import UpstreamInternalError, UpstreamRefused, UpstreamTimeout, UpstreamUnavailable
from gateway.core.upstream_specs import UpstreamSpec
from gateway.mcp.server_upstream import ServerUpstream
from gateway.mcp.upstream import State
from reversi_sdk.errors import EffectUncertainError, Unavailable
from tests.gateway.mcp.servers.pids import is_running, kill, noted_pids
from tests.gateway.mcp.servers.starting import (
    REVISIONS,
    ROOT,
    hostile,
    http_server,
    open_server,
    plain,
    received_by,
    text_of,
    until,
    until_called,
)

LONG_MS = 20_000
MODERN = "2026-07-28"

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OWN = st.dictionaries(st.text(min_size=1).map(lambda name: f"x-{name}"), JSON, max_size=3)
ANNOTATIONS = st.fixed_dictionaries(
    {}, optional={"audience": st.just(["user"]), "priority": st.floats(0, 1), "x-own": JSON}
)


def block(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Give content blocks with these fields, and others that no revision knows."""
    known = st.fixed_dictionaries(fields, optional={"annotations": ANNOTATIONS, "_meta": OWN})
    return st.builds(lambda left, right: {**right, **left}, known, OWN)


CONTENT = st.lists(
    block(type=st.just("text"), text=st.text())
    | block(type=st.just("image"), data=st.just("AAAA"), mimeType=st.text())
    | block(type=st.just("resource_link"), uri=st.just("file:///a"), name=st.text())
    | block(
        type=st.just("resource"),
        resource=st.fixed_dictionaries({"uri": st.just("file:///b"), "text": st.text(), "x-own": JSON}),
    ),
    max_size=3,
)
RESULTS = st.builds(
    lambda known, own: {**own, **known},
    st.fixed_dictionaries(
        {"content": CONTENT},
        optional={
            "structuredContent": st.dictionaries(st.text(), JSON, max_size=3),
            "isError": st.booleans(),
            "_meta": OWN,
        },
    ),
    OWN,
)


async def calls(spec: UpstreamSpec, *requests: tuple[str, dict[str, Any]], **options: Any) -> list[Any]:
    async with open_server(spec) as upstream:
        return [await upstream.call(tool, args, timeout_ms=LONG_MS, **options) for tool, args in requests]


def call(spec: UpstreamSpec, tool: str, args: dict[str, Any] | None = None, **options: Any) -> Any:
    return anyio.run(lambda: calls(spec, (tool, args or {}), **options))[0]


@contextmanager
def served(way: str, revision: str) -> Iterator[UpstreamSpec]:
    if way == "stdio":
        yield plain(revision=revision)
        return
    with http_server(revision=revision, style=way) as url:
        yield UpstreamSpec("plain", url=url)


@contextmanager
def held_open(spec: UpstreamSpec) -> Iterator[Callable[..., list[Any]]]:
    """Keep one session for many examples; what it gives makes calls in turn."""

    async def ask(upstream: ServerUpstream, *requests: tuple[str, dict[str, Any]]) -> list[Any]:
        return [await upstream.call(tool, args, timeout_ms=LONG_MS) for tool, args in requests]

    with start_blocking_portal() as portal, portal.wrap_async_context_manager(open_server(spec)) as upstream:
        yield lambda *requests: portal.call(ask, upstream, *requests)


async def pid_of(upstream: ServerUpstream) -> int:
    received = await upstream.call("received", {}, timeout_ms=LONG_MS)
    return int(received["structuredContent"]["pid"])


@pytest.mark.parametrize("revision", REVISIONS)
def test_each_revision_is_spoken_over_standard_streams(pids: Path, revision: str) -> None:
    answer = call(plain(revision=revision, pids=pids), "echo", {"a": [1, 1.5, None]})

    assert answer["structuredContent"] == {"a": [1, 1.5, None]}


@pytest.mark.parametrize("style", ["json", "events"])
@pytest.mark.parametrize("revision", REVISIONS)
def test_each_revision_is_spoken_over_http(revision: str, style: str) -> None:
    with http_server(revision=revision, style=style) as url:
        answer = call(UpstreamSpec("plain", url=url), "echo", {"a": [1, 1.5, None]})

    assert answer["structuredContent"] == {"a": [1, 1.5, None]}


@pytest.mark.parametrize("way", ["stdio", "json", "events"])
@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_results_arrive_as_the_server_sent_them(way: str, revision: str) -> None:
    more = {"resultType": "complete"} if revision == MODERN else {}

    ask: Callable[..., list[Any]]

    @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(RESULTS, min_size=1, max_size=10))
    def arrive(results: list[dict[str, Any]]) -> None:
        sent = [{**result, **more} for result in results]
        requests = [("answer", {"result": result}) for result in sent]

        assert ask(*requests) == sent

    with served(way, revision) as spec, held_open(spec) as ask:
        arrive()


@pytest.mark.parametrize("revision", ["2025-06-18", MODERN])
def test_meta_has_the_key_and_the_trace_and_what_the_revision_wants(revision: str) -> None:
    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}

    answer = call(plain(revision=revision), "echo", idempotency_key="k1", meta=trace)

    seen = answer["_meta"]["seen"]
    envelope = {key: seen.pop(key) for key in list(seen) if key.startswith("io.modelcontextprotocol/")}
    assert seen == {"idempotency_key": "k1", **trace}
    assert set(envelope) == (
        {f"io.modelcontextprotocol/{key}" for key in ("protocolVersion", "clientInfo", "clientCapabilities")}
        if revision == MODERN
        else set()
    )


def test_meta_is_left_out_when_there_is_nothing_to_say() -> None:
    (answer,) = anyio.run(lambda: calls(plain(), ("received", {})))

    (sent,) = [each for each in answer["structuredContent"]["messages"] if each.get("method") == "tools/call"]
    assert sent["params"] == {"name": "received", "arguments": {}}


def test_the_process_gets_our_environment_without_our_secrets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REVERSI_SECRET_KEY", "s")
    monkeypatch.setenv("DATABASE_URL", "postgres://u:p@h/d")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("OF_THE_USER", "kept")
    spec = plain(env=(("OF_THE_SPEC", "added"),), cwd=tmp_path)

    received = call(spec, "received")["structuredContent"]

    environment = received["environment"]
    assert (environment["OF_THE_USER"], environment["OF_THE_SPEC"]) == ("kept", "added")
    assert not [name for name in environment if name.startswith(("REVERSI_", "DATABASE_URL"))]
    assert received["cwd"] == str(tmp_path)


@pytest.mark.parametrize("number", [-32700, -32600, -32601, -32602, -32002, -32021, -32022, -32042])
def test_a_refusal_says_that_the_tool_did_not_run(number: int) -> None:
    with pytest.raises(UpstreamRefused, match="not today") as refused:
        call(plain(), "error", {"code": number, "message": "not today", "data": {"why": 1}})

    assert (refused.value.number, refused.value.data) == (number, {"why": 1})


# The first two are numbers by which the library speaks of itself; from a server they prove nothing.
@pytest.mark.parametrize("number", [-32000, -32001, -32603, -32019, -32018, 0, 1, 500])
def test_any_other_error_leaves_the_outcome_unknown(number: int) -> None:
    with pytest.raises(UpstreamInternalError, match="the upstream plain failed while it worked: burst"):
        call(plain(), "error", {"code": number, "message": "burst"})


@pytest.mark.parametrize("trouble", ["not_sent", "refused", "session_gone"])
def test_an_error_that_looks_like_one_of_our_own_is_the_servers(trouble: str) -> None:
    with pytest.raises(UpstreamInternalError):
        call(plain(), "error", {"code": -32603, "message": "m", "data": {"mark": "0" * 32, "trouble": trouble}})


def test_an_answer_of_8_mib_passes(pids: Path) -> None:
    text = "é" * (4 * 1024 * 1024)

    answer = call(plain(pids=pids), "answer", {"result": {"content": [{"type": "text", "text": text}]}})

    assert text_of(answer) == text


@pytest.mark.parametrize("style", ["json", "events"])
def test_an_answer_of_8_mib_passes_over_http(style: str) -> None:
    text = "x" * (8 * 1024 * 1024)

    with http_server(style=style) as url:
        spec = UpstreamSpec("plain", url=url)
        answer = call(spec, "answer", {"result": {"content": [{"type": "text", "text": text}]}})

    assert text_of(answer) == text


@pytest.mark.parametrize("arguments", [{"n": float("nan")}, {"n": float("inf")}, {"n": "\ud800"}, {"n": {1, 2}}])
def test_arguments_that_are_no_json_are_not_sent(arguments: dict[str, Any]) -> None:
    async def main() -> list[str]:
        async with open_server(plain()) as upstream:
            with pytest.raises(UpstreamUnavailable, match=r"nothing was sent: .* the arguments are no JSON"):
                await upstream.call("echo", arguments, timeout_ms=LONG_MS)
            received = await upstream.call("received", {}, timeout_ms=LONG_MS)
            return [
                each["params"]["name"]
                for each in received["structuredContent"]["messages"]
                if "name" in each.get("params", {})
            ]

    assert anyio.run(main) == ["received"]


def test_fifty_calls_at_once_get_their_own_answers(pids: Path) -> None:
    async def main() -> dict[int, str]:
        answers: dict[int, str] = {}

        async def ask(upstream: ServerUpstream, at: int) -> None:
            args = {"ms": (50 - at) * 3, "word": f"answer {at}"}
            answers[at] = text_of(await upstream.call("later", args, timeout_ms=LONG_MS))

        async with open_server(plain(pids=pids)) as upstream, anyio.create_task_group() as tasks:
            for at in range(50):
                tasks.start_soon(ask, upstream, at)
        return answers

    assert anyio.run(main) == {at: f"answer {at}" for at in range(50)}


def test_fifty_calls_at_once_get_their_own_answers_over_http() -> None:
    async def main(url: str) -> dict[int, str]:
        answers: dict[int, str] = {}

        async def ask(upstream: ServerUpstream, at: int) -> None:
            answers[at] = text_of(await upstream.call("later", {"ms": 1, "word": str(at)}, timeout_ms=LONG_MS))

        async with open_server(UpstreamSpec("plain", url=url)) as upstream, anyio.create_task_group() as tasks:
            for at in range(50):
                tasks.start_soon(ask, upstream, at)
        return answers

    with http_server() as url:
        assert anyio.run(main, url) == {at: str(at) for at in range(50)}


@pytest.mark.parametrize("revision", ["2025-06-18", MODERN])
def test_progress_is_passed_on(revision: str) -> None:
    heard: list[tuple[float, float | None]] = []

    async def hear(progress: float, total: float | None, _: str | None) -> None:
        heard.append((progress, total))

    call(plain(revision=revision), "progress", on_progress=hear)

    assert heard
    assert set(heard) <= {(1, 3), (2, 3), (3, 3)}


async def give_up(upstream: ServerUpstream, tool: str, **options: Any) -> None:
    """Call the tool, and stop waiting as soon as the call has arrived."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(upstream.call, tool, {}, timeout_ms=LONG_MS, **options))
        await until_called(upstream, tool)
        tasks.cancel_scope.cancel()


def cancelled_requests(messages: list[Any]) -> list[Any]:
    given_up = [each["params"]["requestId"] for each in messages if each.get("method") == "notifications/cancelled"]
    return [
        each["params"]["name"] for each in messages if each.get("id") in given_up and each.get("method") == "tools/call"
    ]


@pytest.mark.parametrize("revision", ["2025-06-18", MODERN])
def test_a_call_that_is_given_up_is_cancelled_upstream(pids: Path, revision: str) -> None:
    async def main() -> list[Any]:
        async with open_server(plain(revision=revision, pids=pids)) as upstream:
            await give_up(upstream, "never")
            return await received_by(upstream)

    assert cancelled_requests(anyio.run(main)) == ["never"]


def test_a_call_that_takes_too_long_is_cancelled_upstream(pids: Path) -> None:
    async def main() -> list[Any]:
        async with open_server(plain(pids=pids)) as upstream:
            with pytest.raises(UpstreamTimeout, match=r"did not answer within 0\.2 s"):
                await upstream.call("never", {}, timeout_ms=200)
            return await received_by(upstream)

    assert cancelled_requests(anyio.run(main)) == ["never"]


def test_whoever_gives_up_while_nothing_was_sent_is_told_so(pids: Path) -> None:
    told: list[str] = []

    async def main() -> None:
        spec = hostile(pids=pids, options=["--start", "silent"])
        async with anyio.create_task_group() as tasks:
            upstream = ServerUpstream(spec)
            tasks.start_soon(upstream.run)
            on_unsent = partial(told.append, "unsent")
            tasks.start_soon(partial(upstream.call, "fine", {}, timeout_ms=LONG_MS, on_unsent=on_unsent))
            await until(lambda: bool(noted_pids(pids)))
            tasks.cancel_scope.cancel()

    anyio.run(main)

    assert told == ["unsent"]


def test_whoever_gives_up_what_was_sent_is_not_told_otherwise(pids: Path) -> None:
    told: list[str] = []

    async def main() -> None:
        async with open_server(plain(pids=pids)) as upstream:
            await give_up(upstream, "never", on_unsent=lambda: told.append("unsent"))

    anyio.run(main)

    assert told == []


def test_a_server_that_was_killed_between_calls_is_started_again(pids: Path) -> None:
    async def main() -> tuple[int, int]:
        async with open_server(plain(pids=pids)) as upstream:
            before = await pid_of(upstream)
            kill(before)
            return before, await pid_of(upstream)

    before, after = anyio.run(main)

    assert before != after
    assert [before, after] == noted_pids(pids)


def test_how_a_session_ended_is_remembered(caplog: pytest.LogCaptureFixture, pids: Path) -> None:
    async def main() -> None:
        async with open_server(hostile(pids=pids)) as upstream:
            with suppress(EffectUncertainError):
                await upstream.call("die", {}, timeout_ms=LONG_MS)
            await upstream.call("fine", {}, timeout_ms=LONG_MS)

    anyio.run(main)

    assert "the upstream hostile exited with code 3 (the disk is full); it is started again" in caplog.text


def test_the_list_of_tools_is_kept_until_it_changes_or_the_session_does(pids: Path) -> None:
    async def main() -> list[int]:
        async with open_server(plain(pids=pids)) as upstream:
            counts = [len(await upstream.list_tools())]
            first = await upstream.list_tools()
            assert first is await upstream.list_tools()
            await upstream.call("grow", {}, timeout_ms=LONG_MS)
            counts.append(len(await upstream.list_tools()))
            kill(await pid_of(upstream))
            await pid_of(upstream)
            return [*counts, len(await upstream.list_tools())]

    before, grown, again = anyio.run(main)

    assert (grown - before, again) == (1, before)


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_a_server_of_2026_tells_of_new_tools_too(way: str) -> None:
    async def main(spec: UpstreamSpec) -> list[str]:
        async with open_server(spec) as upstream:
            before = [tool["name"] for tool in await upstream.list_tools()]
            await upstream.call("grow", {}, timeout_ms=LONG_MS)
            new: list[str] = []
            with anyio.fail_after(10):
                while not new:
                    await anyio.sleep(0.01)
                    new = [tool["name"] for tool in await upstream.list_tools() if tool["name"] not in before]
            return new

    if way == "stdio":
        (new,) = anyio.run(main, plain(revision=MODERN))
    else:
        with http_server(revision=MODERN) as url:
            (new,) = anyio.run(main, UpstreamSpec("plain", url=url))

    assert new.startswith("more_")


def test_tools_are_listed_as_sent_and_from_every_page() -> None:
    async def main(page: int) -> list[dict[str, Any]]:
        async with open_server(plain(options=["--page", str(page)])) as upstream:
            return list(await upstream.list_tools())

    paged, whole = anyio.run(main, 2), anyio.run(main, 0)

    assert paged == whole
    assert all(tool["x-own"] == [tool["name"]] for tool in whole)


def listed_by(spec: UpstreamSpec) -> list[str]:
    async def main() -> list[str]:
        async with open_server(spec) as upstream:
            return [tool["name"] for tool in await upstream.list_tools()]

    return anyio.run(main)


def test_a_tool_that_is_listed_twice_is_offered_once() -> None:
    assert listed_by(plain(options=["--oddity", "twice"])) == listed_by(plain())


@pytest.mark.parametrize(("revision", "left_out"), [("2025-11-25", []), (MODERN, ["echo"])])
def test_a_tool_that_marks_what_nobody_may_mark_is_left_out_since_2026(revision: str, left_out: list[str]) -> None:
    listed = listed_by(plain(revision=revision, options=["--oddity", "marked"]))

    assert [name for name in listed_by(plain(revision=revision)) if name not in listed] == left_out


def test_a_list_without_end_is_given_up() -> None:
    with pytest.raises(UpstreamUnavailable, match=r"nothing was sent: .* lists its tools on more than 200 pages"):
        listed_by(plain(options=["--oddity", "endless"]))


def test_a_call_whose_headers_are_refused_is_sent_again_after_a_new_look_at_the_tools() -> None:
    async def main() -> list[str]:
        async with open_server(plain(revision=MODERN)) as upstream:
            args = {"code": -32020, "message": "the headers do not match"}
            with pytest.raises(UpstreamRefused, match="the headers do not match"):
                await upstream.call("error", args, timeout_ms=LONG_MS)
            return [each["method"] for each in await received_by(upstream) if each["method"].startswith("tools/")]

    asked = anyio.run(main)

    assert asked[:3] == ["tools/list", "tools/call", "tools/list"]
    assert asked.count("tools/call") == 4


def test_marked_arguments_are_repeated_in_headers_since_2026() -> None:
    async def main(url: str) -> list[Any]:
        async with open_server(UpstreamSpec("plain", url=url, headers=(("X-Token", "t"),))) as upstream:
            await upstream.call("echo", {"region": "eu"}, timeout_ms=LONG_MS)
            return await received_by(upstream)

    with http_server(revision=MODERN) as url:
        received = anyio.run(main, url)

    (headers,) = [each["headers"] for each in received if (each.get("params") or {}).get("name") == "echo"]
    assert headers["mcp-param-region"] == "eu"
    assert (headers["mcp-method"], headers["mcp-name"], headers["x-token"]) == ("tools/call", "echo", "t")


def wait_until_gone(pids: Sequence[int]) -> list[int]:
    """Return which of the processes still run, after the moment that the system needs to take a killed one away."""
    deadline = time.monotonic() + 5
    while (running := [pid for pid in pids if is_running(pid)]) and time.monotonic() < deadline:
        time.sleep(0.01)
    return running


@pytest.mark.parametrize("how", ["close", "cancel", "error"])
@pytest.mark.parametrize("tool", ["silent", "deaf", "endless_line"])
def test_a_server_in_mid_call_does_not_outlive_us(pids: Path, tmp_path: Path, tool: str, how: str) -> None:
    calls_file = tmp_path / "calls"
    spec = hostile(pids=pids, options=["--stays", "--calls", str(calls_file)])

    async def ask(upstream: ServerUpstream) -> None:
        with suppress(EffectUncertainError, Unavailable):
            await upstream.call(tool, {}, timeout_ms=LONG_MS)

    async def main() -> None:
        with anyio.CancelScope() as outside:
            async with open_server(spec) as upstream, anyio.create_task_group() as tasks:
                tasks.start_soon(ask, upstream)
                await until(lambda: calls_file.exists() and tool in calls_file.read_text())
                match how:
                    case "cancel":
                        outside.cancel()
                    case "error":
                        raise ZeroDivisionError
                    case _:
                        tasks.cancel_scope.cancel()

    with pytest.raises(ExceptionGroup) if how == "error" else nullcontext():
        anyio.run(main)

    assert [pid for pid in noted_pids(pids) if is_running(pid)] == []


def test_what_a_server_started_does_not_outlive_us(pids: Path) -> None:
    answer = call(hostile(pids=pids), "grandchild")

    assert wait_until_gone([int(text_of(answer))]) == []


def test_a_server_that_is_only_being_started_does_not_outlive_us(pids: Path) -> None:
    spec = hostile(pids=pids, options=["--start", "silent", "--stays"])

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ServerUpstream(spec).run)
            await until(lambda: bool(noted_pids(pids)))
            tasks.cancel_scope.cancel()

    anyio.run(main)

    assert [pid for pid in noted_pids(pids) if is_running(pid)] == []


@pytest.mark.parametrize("tool", ["forgot_404", "forgot_404_invalid", "forgot_400"])
def test_a_session_that_a_url_has_forgotten_is_replaced_and_the_call_sent_once_more(tool: str) -> None:
    async def main() -> tuple[dict[str, Any], int]:
        with http_server() as url:
            async with open_server(UpstreamSpec("plain", url=url)) as upstream:
                answer = await upstream.call(tool, {}, timeout_ms=LONG_MS)
                received = [(each.get("params") or {}).get("name") for each in await received_by(upstream)]
                return answer, received.count(tool)

    assert anyio.run(main) == ({"content": []}, 2)


def test_a_session_that_is_forgotten_when_tools_are_listed_is_replaced_too() -> None:
    async def main() -> int:
        with http_server() as url:
            async with open_server(UpstreamSpec("plain", url=url)) as upstream:
                await upstream.call("forget", {}, timeout_ms=LONG_MS)
                with pytest.raises(UpstreamUnavailable, match="does not list its tools: Session not found"):
                    await upstream.list_tools(is_fresh=True)
                return len(await upstream.list_tools(is_fresh=True))

    assert anyio.run(main) > 0


@pytest.mark.parametrize("tool", ["refused_401", "refused_400"])
def test_a_refusal_by_status_is_one_whatever_number_it_brings(tool: str) -> None:
    async def main() -> None:
        with http_server() as url:
            async with open_server(UpstreamSpec("plain", url=url)) as upstream:
                with pytest.raises(UpstreamRefused, match=r"Unauthorized|Bad Request"):
                    await upstream.call(tool, {}, timeout_ms=LONG_MS)
                assert text_of(await upstream.call("echo", {}, timeout_ms=LONG_MS)) == "echoed"

    anyio.run(main)


def test_a_url_that_nobody_serves_is_told_and_tried_again() -> None:
    async def main() -> tuple[str, str, str]:
        with http_server() as url:
            port = int(url.split(":")[2].split("/")[0])
        async with open_server(UpstreamSpec("plain", url=url)) as upstream:
            with pytest.raises(UpstreamUnavailable) as gone:
                await upstream.call("echo", {}, timeout_ms=LONG_MS)
            state = upstream.state
            with http_server(port=port):
                answer = await upstream.call("echo", {}, timeout_ms=LONG_MS)
            return str(gone.value), state, text_of(answer)

    error, state, text = anyio.run(main)

    assert error.startswith("nothing was sent: the upstream plain cannot be reached: ")
    assert (state, text) == (State.DOWN, "echoed")
