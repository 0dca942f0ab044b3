"""Sessions over HTTP when the network, a proxy or the server fails; and handshakes that come to nothing."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.core.upstream_errors import (
    UpstreamAnswerInvalid,
    UpstreamAnswerLost,
    UpstreamInternalError,
    UpstreamRefused,
    UpstreamUnavailable,
)
from gateway.core.upstream_specs import UpstreamSpec
from gateway.mcp.opening import open_session
from gateway.mcp.server_upstream import ServerUpstream
from reversi_sdk.errors import EffectUncertainError, ToolError
from tests.gateway.mcp.servers.starting import hostile, http_server, open_server, plain, text_of

LONG_MS = 20_000

FAULTS = {
    "http_400": (UpstreamRefused, "HTTP 400 Bad Request"),
    "http_401": (UpstreamRefused, "HTTP 401 Unauthorized"),
    "http_403": (UpstreamRefused, "HTTP 403 Forbidden"),
    "http_429": (UpstreamRefused, "HTTP 429 Too Many Requests"),
    "http_302": (UpstreamRefused, "HTTP 302 Found"),
    "http_404": (UpstreamRefused, "HTTP 404 Not Found"),
    "http_500": (UpstreamInternalError, "failed while it worked: HTTP 500 Internal Server Error"),
    "http_503": (UpstreamInternalError, "failed while it worked: HTTP 503 Service Unavailable"),
    "http_202": (UpstreamAnswerInvalid, "HTTP 202 Accepted"),
    "html": (UpstreamAnswerInvalid, "HTTP 200 OK"),
    "no_json": (UpstreamAnswerInvalid, "HTTP 200 OK"),
    "half_json": (UpstreamAnswerInvalid, "HTTP 200 OK"),
    "broken_off": (UpstreamAnswerLost, "broke off the connection"),
    "half_events": (UpstreamAnswerLost, "broke off"),
    "null_id": (UpstreamRefused, "who are you"),
    "other_id": (UpstreamAnswerInvalid, "it answered another request"),
    "too_large": (UpstreamAnswerInvalid, "its answer has more than 16 MiB"),
    "bad_gzip": (UpstreamAnswerInvalid, "not as the protocol says"),
    "hung_up": (UpstreamAnswerLost, "broke off the connection"),
}


async def ending(upstream: ServerUpstream, tool: str) -> Exception:
    try:
        answer = await upstream.call(tool, {}, timeout_ms=LONG_MS)
    except (ToolError, EffectUncertainError) as error:
        return error
    return AssertionError(f"it was answered: {answer}")


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("tool", FAULTS)
def test_what_goes_wrong_over_http_costs_only_its_own_call_and_is_told_for_what_it_is(tool: str, revision: str) -> None:
    answers: list[str] = []

    async def main(url: str) -> Exception | None:
        async def ask_meanwhile() -> None:
            answer = await upstream.call("later", {"ms": 300, "word": "meanwhile"}, timeout_ms=LONG_MS)
            answers.append(text_of(answer))

        error: Exception | None = None
        async with open_server(UpstreamSpec("plain", url=url)) as upstream, anyio.create_task_group() as tasks:
            if tool != "http_404":
                # 404 says that the session is over: then the others end too.
                tasks.start_soon(ask_meanwhile)
            error = await ending(upstream, tool)
            answers.append(text_of(await upstream.call("echo", {}, timeout_ms=LONG_MS)))
        return error

    with http_server(revision=revision) as url:
        error = anyio.run(main, url)

    kind, words = FAULTS[tool]
    assert type(error) is kind
    assert words in str(error)
    assert sorted(answers) == (["echoed"] if tool == "http_404" else ["echoed", "meanwhile"])


async def opening(spec: UpstreamSpec, handshake_s: float) -> str:
    with pytest.raises(UpstreamUnavailable) as unavailable:
        async with open_session(spec, on_tools_changed=lambda: None, handshake_s=handshake_s):
            pytest.fail("the session was opened")
    return str(unavailable.value)


def test_a_handshake_that_is_not_answered_ends(pids: Path) -> None:
    spec = hostile(pids=pids, options=["--start", "silent"])

    assert anyio.run(opening, spec, 0.3) == (
        "nothing was sent: the upstream hostile did not answer the handshake within 0.3 s"
    )


def test_a_url_that_is_no_server_of_the_protocol_is_told() -> None:
    with http_server() as url:
        said = anyio.run(opening, UpstreamSpec("plain", url=url.replace("/mcp", "/wrong")), 5)

    assert said == "nothing was sent: the upstream plain refused the handshake: HTTP 404 Not Found"


def test_a_url_that_cannot_be_one_is_told() -> None:
    said = anyio.run(opening, UpstreamSpec("plain", url="ftp://127.0.0.1/mcp"), 5)

    assert said.startswith("nothing was sent: the upstream plain cannot be reached: ")


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25", "2026-07-28"])
def test_the_revision_is_the_servers_own(pids: Path, revision: str) -> None:
    async def main() -> str:
        spec = plain(revision=revision, pids=pids)
        async with open_session(spec, on_tools_changed=lambda: None) as session:
            return session.version

    assert anyio.run(main) == revision


def test_nothing_is_sent_over_a_session_that_was_closed(pids: Path) -> None:
    async def main() -> Any:
        async with open_session(plain(pids=pids), on_tools_changed=lambda: None) as session:
            session.close("was let go for the test")
            with pytest.raises(
                UpstreamUnavailable, match="nothing was sent: the upstream plain was let go for the test"
            ):
                await session.request("tools/list", {}, timeout_ms=LONG_MS)

    anyio.run(main)
