"""What an upstream's server wrote reaches the client whole, through the library's own server and client."""

from collections.abc import Mapping
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.server import Server
from mcp.server.context import ServerRequestContext

from gateway.mcp.lossless import Lossless, authored_call, authored_list, put_back
from tests.gateway.mcp.wires import ERAS, recorded

TOOL = {
    "name": "odd",
    "inputSchema": {"type": "object", "x-mine": [None]},
    "annotations": {"readOnlyHint": True, "theirHint": 1},
    "_meta": {"anvil/effect_class": "read"},
    "icon": "later",
}
RESULT = {
    "content": [{"type": "text", "text": "hello", "annotations": {"theirs": None}, "more": 1}],
    "structuredContent": {"none": None, "deep": [{"none": None}], "big": 2**70},
    "isError": False,
    "_meta": {"their/note": None, "reversi/step": {"run": "run_1", "step": 0}},
    "unheard": {"of": None},
}


def server(*, tools: list[Mapping[str, Any]], result: Mapping[str, Any]) -> Server[Any]:
    async def list_tools(ctx: ServerRequestContext[Any], params: Any) -> Any:
        return authored_list(ctx.protocol_version, tools)

    async def call_tool(ctx: ServerRequestContext[Any], params: Any) -> Any:
        return authored_call(ctx.protocol_version, result)

    made = Server("odd", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    made.middleware.append(Lossless())
    return made


def answers(mode: str, *, tools: list[Mapping[str, Any]] | None = None, result: Mapping[str, Any] = RESULT) -> Any:
    """Return the results of tools/list and tools/call as they were on the wire."""

    async def main() -> list[dict[str, Any]]:
        served = server(tools=[TOOL] if tools is None else tools, result=result)
        async with recorded(served) as (transport, results), Client(transport, mode=mode, cache=None) as client:
            await client.list_tools()
            await client.call_tool("odd", {})
        return [next(result for result in reversed(results) if key in result) for key in ("tools", "content")]

    return anyio.run(main)


@pytest.mark.parametrize("era", ERAS)
def test_results_keep_every_field(era: str) -> None:
    listed, called = answers(ERAS[era])

    assert listed["tools"] == [TOOL]
    own = called["_meta"].pop("io.modelcontextprotocol/serverInfo", None)
    assert {key: called[key] for key in RESULT} == RESULT
    assert (own is not None, "resultType" in called, "resultType" in listed) == ((era == "2026",) * 3)


@pytest.mark.parametrize("era", ERAS)
def test_results_carry_the_envelope_of_this_exchange_only(era: str) -> None:
    theirs = {
        "content": [],
        "resultType": "complete",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "other", "version": "9"}},
    }

    _, called = answers(ERAS[era], result=theirs)

    meta = called.get("_meta", {})
    assert meta.get("io.modelcontextprotocol/serverInfo", {}).get("name") == ("odd" if era == "2026" else None)


UNFIT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a list as structured content": (
        {"content": [{"type": "text", "text": "[1]"}], "structuredContent": [1]},
        {"content": [{"type": "text", "text": "[1]"}]},
    ),
    "content of a kind of later": (
        {"content": [{"type": "hologram"}], "isError": True, "_meta": {"a/b": 1}},
        {"isError": True, "_meta": {"a/b": 1}},
    ),
}


@pytest.mark.parametrize("case", UNFIT)
def test_result_that_a_revision_cannot_carry_is_told(case: str) -> None:
    result, expected = UNFIT[case]

    _, called = answers(ERAS["2025"], result=result)

    assert {key: called[key] for key in expected} == expected
    assert "structuredContent" not in called
    if case.startswith("content"):
        assert '{"content": [{"type": "hologram"}]}' in called["content"][0]["text"]


def test_tool_that_a_revision_cannot_name_is_left_out_alone() -> None:
    loose = {"name": "loose", "inputSchema": {"type": "object"}, "outputSchema": {"anyOf": []}}

    listed, _ = answers(ERAS["2025"], tools=[{"name": "broken", "inputSchema": {}}, loose, TOOL])

    assert [tool["name"] for tool in listed["tools"]] == ["loose", "odd"]
    assert "outputSchema" not in listed["tools"][0]


def test_put_back_prefers_what_was_authored() -> None:
    sieved = {"content": [], "resultType": "complete", "_meta": {"a": 1, "b": 2}}

    assert put_back(sieved, {"content": [1], "_meta": {"a": None}}) == {
        "content": [1],
        "resultType": "complete",
        "_meta": {"a": None, "b": 2},
    }
