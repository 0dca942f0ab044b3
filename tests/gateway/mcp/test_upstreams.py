"""Several upstreams as one: names, prefixes, who is asked, and what a name may become."""

import logging
from pathlib import Path
from typing import Any

import anyio
import pytest

from connectors.settings import build_connector
from gateway.core.upstream_errors import ToolReported, UnknownTool, UpstreamAnswerLost, UpstreamUnavailable
from gateway.core.upstream_specs import UpstreamSpec
from gateway.mcp.upstream import State
from gateway.mcp.upstreams import ToolOfferedTwice, Upstreams, open_upstreams
from reversi_sdk.errors import EffectUncertainError
from tests.gateway.mcp.servers.pids import kill
from tests.gateway.mcp.servers.starting import hostile, plain, text_of, until

LONG_MS = 20_000


def names(tools: list[dict[str, Any]]) -> list[str]:
    return [tool["name"] for tool in tools]


async def call(upstreams: Upstreams, tool: str, args: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    return await upstreams.call(tool, args or {}, timeout_ms=LONG_MS, **options)


def down(name: str = "down", **spec: Any) -> UpstreamSpec:
    return hostile(name=name, options=["--start", "exit"], **spec)


def test_tools_are_known_by_their_prefix_and_called_by_their_own_name() -> None:
    async def main() -> tuple[list[str], str, Any]:
        specs = [plain(name="one", prefix="one."), plain(name="two", prefix="two.")]
        async with open_upstreams(specs) as upstreams:
            listed = await upstreams.list_tools()
            called = await call(upstreams, "two.received")
            sent = called["structuredContent"]["messages"][-1]["params"]["name"]
            return names(listed), (await upstreams.find("two.received"))[0].name, sent

    listed, owner, sent = anyio.run(main)

    assert {"one.echo", "two.echo"} <= set(listed)
    assert (owner, sent) == ("two", "received")


def test_one_name_from_two_upstreams_is_an_error_that_names_both() -> None:
    async def main() -> None:
        async with open_upstreams([plain(name="one"), plain(name="two")]):
            pytest.fail("opened")

    with pytest.raises(ToolOfferedTwice, match="both one and two offer echo: give one of them a prefix"):
        anyio.run(main)


def test_a_name_that_comes_later_from_somebody_else_stays_with_the_first(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> tuple[list[str], str]:
        # The first comes to offer a.more_0, which the second has offered from the start.
        specs = [
            plain(name="one", prefix="a."),
            plain(name="two", prefix="a.m", options=["--tool", "ore_0"]),
        ]
        async with open_upstreams(specs) as upstreams:
            await call(upstreams, "a.grow")
            return names(await upstreams.list_tools()), (await upstreams.find("a.more_0"))[0].name

    with caplog.at_level(logging.WARNING, logger="gateway.mcp.upstreams"):
        listed, owner = anyio.run(main)

    assert listed.count("a.more_0") == 1
    assert owner == "two"
    assert "a.more_0 of the upstream one is left out: two offers it" in caplog.text


def test_a_tool_named_like_one_of_ours_is_left_out_with_a_reason(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> list[str]:
        async with open_upstreams([plain(options=["--tool", "reversi.run"])]) as upstreams:
            with pytest.raises(UnknownTool):
                await call(upstreams, "reversi.run")
            return names(await upstreams.list_tools())

    with caplog.at_level(logging.WARNING, logger="gateway.mcp.upstreams"):
        listed = anyio.run(main)

    assert "reversi.run" not in listed
    assert "reversi.run of the upstream plain is left out: the name is ours" in caplog.text


def test_an_upstream_that_is_down_costs_the_others_nothing() -> None:
    async def main() -> tuple[list[str], str, float]:
        async with open_upstreams([down(), plain(prefix="up.")]) as upstreams:
            began_at = anyio.current_time()
            answer = await call(upstreams, "up.echo")
            took_s = anyio.current_time() - began_at
            return names(await upstreams.list_tools()), text_of(answer), took_s

    listed, text, took_s = anyio.run(main)

    assert "up.echo" in listed
    assert text == "echoed"
    assert took_s < 1


def test_a_tool_that_may_be_one_of_an_upstream_that_is_down_is_not_unknown() -> None:
    async def main() -> None:
        async with open_upstreams([down(), plain(prefix="up.")]) as upstreams:
            await call(upstreams, "anything")

    with pytest.raises(UpstreamUnavailable, match="nothing was sent: the upstream down exited with code 7"):
        anyio.run(main)


def test_a_tool_that_nobody_offers_is_unknown() -> None:
    async def main() -> None:
        async with open_upstreams([plain(prefix="up.")]) as upstreams:
            await call(upstreams, "echo")

    with pytest.raises(UnknownTool, match="no upstream offers echo"):
        anyio.run(main)


def test_a_call_waits_for_the_upstream_it_belongs_to_and_goes_to_no_other(tmp_path: Path) -> None:
    connector = build_connector("fs", root=tmp_path, backup_dir=None, environ={})

    async def main() -> tuple[str, str]:
        specs = [plain(name="files", options=["--tool", "fs.stat"])]
        async with open_upstreams(specs, {"fs": connector}) as upstreams:
            pid = (await call(upstreams, "received"))["structuredContent"]["pid"]
            kill(pid)
            await until(lambda: upstreams.servers[0].state is State.DOWN)
            return text_of(await call(upstreams, "fs.stat")), (await upstreams.find("fs.stat"))[0].name

    assert anyio.run(main) == ("fs.stat", "files")


def test_the_upstream_that_is_asked_for_goes_first_and_alone_while_it_is_down(tmp_path: Path) -> None:
    connector = build_connector("fs", root=tmp_path, backup_dir=None, environ={})

    async def main() -> Any:
        async with open_upstreams([down("files")], {"fs": connector}) as upstreams:
            with pytest.raises(UpstreamUnavailable, match="files"):
                await upstreams.read("fs.stat", {"path": "."}, timeout_ms=LONG_MS, upstream="files")
            return await upstreams.read("fs.stat", {"path": "."}, timeout_ms=LONG_MS)

    assert anyio.run(main)["kind"] == "directory"


def test_a_read_gives_the_value_and_raises_what_the_tool_reports() -> None:
    reported = {"content": [{"type": "text", "text": "no such row"}], "isError": True}

    async def main() -> Any:
        async with open_upstreams([plain()]) as upstreams:
            value = await upstreams.read("echo", {"a": 1}, timeout_ms=LONG_MS)
            with pytest.raises(ToolReported, match="no such row"):
                await upstreams.read("answer", {"result": reported}, timeout_ms=LONG_MS)
            return value

    assert anyio.run(main) == {"a": 1}


def test_only_a_live_upstream_is_live() -> None:
    async def main() -> list[bool]:
        specs = [plain(name="one", is_live=True, prefix="a."), plain(name="two", prefix="b.")]
        async with open_upstreams(specs) as upstreams:
            found = [upstreams.named(name) for name in ("one", "two", "three")]
            return [each is not None and each.is_live for each in found]

    assert anyio.run(main) == [True, False, False]


def test_only_a_live_upstream_is_remembered_by_its_session() -> None:
    async def main() -> list[tuple[str, str]]:
        specs = [plain(name="one", is_live=True, prefix="a."), plain(name="two", prefix="b.")]
        async with open_upstreams(specs) as upstreams:
            return [(upstream.name, upstream.journal_name) for upstream in upstreams.all]

    (_, live), (_, other) = anyio.run(main)

    assert live.startswith("one#")
    assert other == "two"


def test_what_was_meant_for_a_live_session_never_goes_to_the_next_one() -> None:
    async def main() -> tuple[Any, ...]:
        async with open_upstreams([plain(name="one", is_live=True)]) as upstreams:
            (live,) = upstreams.servers
            before = live.journal_name
            found = await upstreams.offered_by(before, "echo")
            with pytest.raises(UpstreamAnswerLost):
                await upstreams.call_at(before, "die", {}, timeout_ms=LONG_MS)
            await until(lambda: live.journal_name != before)
            await upstreams.list_tools()
            assert live.state is State.READY
            with pytest.raises(UnknownTool):
                await upstreams.call_at(before, "echo", {}, timeout_ms=LONG_MS)
            return found, await upstreams.offered_by(before, "echo"), await upstreams.offered_by("one", "echo")

    found, in_the_old, in_the_new = anyio.run(main)

    assert found == in_the_new is not None
    assert in_the_old is None


def test_a_call_that_meets_the_end_of_a_live_session_is_not_sent_to_the_next_one() -> None:
    async def main() -> None:
        async with open_upstreams([plain(name="one", is_live=True)]) as upstreams:
            (live,) = upstreams.servers
            with pytest.raises(UpstreamAnswerLost):
                await live.call("die", {}, timeout_ms=LONG_MS)
            # The owner has not heard of it yet: what is asked now was meant for the session that has ended.
            with pytest.raises(UpstreamUnavailable, match="has begun another session"):
                await live.call("echo", {}, timeout_ms=LONG_MS)
            assert "structuredContent" in await live.call("echo", {}, timeout_ms=LONG_MS)

    anyio.run(main)


def test_what_is_raised_in_the_block_comes_out_as_it_is() -> None:
    async def main() -> None:
        async with open_upstreams([plain()]):
            raise EffectUncertainError("as it is")

    with pytest.raises(EffectUncertainError, match="as it is"):
        anyio.run(main)
