"""A connector of this process as an upstream: the same words as from its own server."""

import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

from connectors.core.connector import ConnectorSpec
from connectors.core.outcomes import EffectUncertainError, ToolError
from connectors.core.tool import CallContext, Tool
from connectors.settings import build_connector
from gateway.core.upstream_errors import UpstreamRefused, UpstreamTimeout
from gateway.mcp.connector_upstream import ConnectorUpstream
from reversi_sdk.model import Effect

LONG_MS = 20_000


def files(root: Path) -> ConnectorUpstream:
    return ConnectorUpstream("fs", build_connector("fs", root=root, backup_dir=None, environ={}))


def call(upstream: ConnectorUpstream, tool: str, args: dict[str, Any], **options: Any) -> dict[str, Any]:
    async def main() -> dict[str, Any]:
        return await upstream.call(tool, args, **{"timeout_ms": LONG_MS, **options})

    return anyio.run(main)


def test_tools_are_listed_with_their_schemas_and_what_they_do(tmp_path: Path) -> None:
    tools = {tool["name"]: tool for tool in anyio.run(files(tmp_path).list_tools)}

    assert tools["fs.read_file"]["annotations"] == {"readOnlyHint": True}
    assert tools["fs.write_file"]["annotations"] == {"readOnlyHint": False}
    assert tools["fs.write_file"]["inputSchema"]["required"] == ["path", "content"]
    assert tools["fs.restore_file"]["_meta"] == {"reversi/compensation_only": True}


def test_a_result_is_structured_and_a_text(tmp_path: Path) -> None:
    answer = call(files(tmp_path), "fs.write_file", {"path": "a.txt", "content": "x"})

    assert (tmp_path / "a.txt").read_text() == "x"
    assert answer["structuredContent"]["path"] == "a.txt"
    assert "isError" not in answer


def test_what_was_definitely_not_done_is_an_error_result(tmp_path: Path) -> None:
    answer = call(files(tmp_path), "fs.read_file", {"path": "missing"})

    assert answer["isError"] is True
    assert "_meta" not in answer


def one_tool(run: Any) -> ConnectorUpstream:
    """A connector with a single tool that does what it is given to."""
    row = Tool(
        name="odd.do",
        effect=Effect.IRREVERSIBLE,
        permission="odd",
        description="Does.",
        inputs={},
        run=run,
        summary="did",
    )
    return ConnectorUpstream("odd", ConnectorSpec("odd", (row,)).bind(None))


def test_an_effect_that_nobody_knows_of_says_so() -> None:
    def lose(*_: object) -> None:
        raise EffectUncertainError("the connection broke")

    answer = call(one_tool(lose), "odd.do", {})

    assert (answer["isError"], answer["_meta"]) == (True, {"reversi/outcome": "uncertain"})


def test_the_key_and_the_permission_to_overwrite_reach_the_tool() -> None:
    seen: list[CallContext] = []

    def see(_state: object, _args: object, context: CallContext) -> None:
        seen.append(context)

    call(one_tool(see), "odd.do", {}, idempotency_key="k1", meta={"reversi/overwrite": True})

    assert seen == [CallContext(idempotency_key="k1", is_overwrite_allowed=True)]


def test_a_tool_that_is_none_is_refused() -> None:
    def never(*_: object) -> None:
        raise ToolError("not reached")

    with pytest.raises(UpstreamRefused, match=r"connector odd has no tool odd\.else"):
        call(one_tool(never), "odd.else", {})


def test_a_call_that_takes_too_long_is_given_up_and_goes_on_alone() -> None:
    may_end, has_ended = threading.Event(), threading.Event()

    def wait(*_: object) -> None:
        may_end.wait(10)
        has_ended.set()

    try:
        with pytest.raises(UpstreamTimeout, match=r"odd did not answer within 0\.1 s"):
            call(one_tool(wait), "odd.do", {}, timeout_ms=100)
        assert not has_ended.is_set()
    finally:
        may_end.set()
    assert has_ended.wait(10)


def test_calls_do_not_hold_up_the_loop_or_each_other() -> None:
    both = threading.Barrier(2, timeout=10)
    upstream = one_tool(lambda *_: both.wait())

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(lambda: upstream.call("odd.do", {}, timeout_ms=LONG_MS))

    anyio.run(main)

    assert not both.broken
