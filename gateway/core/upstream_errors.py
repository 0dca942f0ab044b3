"""How a request to an upstream ends when it brings no result: each class says whether anything was sent (D109)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.core.results import error_text_of
from reversi_sdk.errors import EffectUncertainError, NotFound, ToolError, Unavailable


class UpstreamUnavailable(Unavailable):
    """The upstream cannot be reached: nothing was sent."""

    code = "upstream_unavailable"

    def __init__(self, upstream: str, why: str) -> None:
        super().__init__(f"nothing was sent: the upstream {upstream} {why}")
        self.upstream, self.why = upstream, why


class UnknownTool(NotFound):
    """No upstream offers the tool: nothing was sent."""

    code = "unknown_tool"

    def __init__(self, tool: str) -> None:
        super().__init__(f"no upstream offers {tool}")
        self.tool = tool


class UpstreamRefused(ToolError):
    """The upstream answered that it did not take the request: the tool did not run."""

    code = "upstream_refused"

    def __init__(self, upstream: str, number: int, message: str, data: Any = None) -> None:
        super().__init__(message or f"error {number}")
        self.upstream, self.number, self.data = upstream, number, data


class UpstreamTimeout(EffectUncertainError):
    """No answer came in time."""

    code = "upstream_timeout"

    def __init__(self, upstream: str, timeout_ms: int) -> None:
        super().__init__(f"the upstream {upstream} did not answer within {timeout_ms / 1000:g} s")
        self.upstream, self.timeout_ms = upstream, timeout_ms


class UpstreamAnswerLost(EffectUncertainError):
    """The connection ended before the answer came."""

    code = "upstream_answer_lost"

    def __init__(self, upstream: str, why: str) -> None:
        super().__init__(f"the upstream {upstream} {why} before it answered")
        self.upstream, self.why = upstream, why


class UpstreamAnswerInvalid(EffectUncertainError):
    """Something came that is no answer of this protocol."""

    code = "upstream_answer_invalid"

    def __init__(self, upstream: str, problem: str) -> None:
        super().__init__(f"the upstream {upstream} answered, but not as the protocol says: {problem}")
        self.upstream, self.problem = upstream, problem


class UpstreamInternalError(EffectUncertainError):
    """The upstream broke somewhere in its work, as a server with a 5xx on a write (D39)."""

    code = "upstream_internal_error"

    def __init__(self, upstream: str, number: int, message: str, data: Any = None) -> None:
        super().__init__(f"the upstream {upstream} failed while it worked: {message or f'error {number}'}")
        self.upstream, self.number, self.data = upstream, number, data


class ToolReported(ToolError):
    """The tool answered with an error of its own; `answer` is the whole result as sent."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        super().__init__(error_text_of(answer))
        self.answer = answer


class ToolReportedUncertain(EffectUncertainError):
    """The tool answered that it does not know whether its effect happened; `answer` is the whole result as sent."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        super().__init__(error_text_of(answer))
        self.answer = answer


# The tool was not run: the request itself was refused. 32002 and 32042 are of earlier revisions.
REFUSALS = frozenset({-32700, -32600, -32601, -32602, -32002, -32020, -32021, -32022, -32042})


def error_of(upstream: str, number: int, message: str, data: Any = None) -> UpstreamRefused | UpstreamInternalError:
    """Return what a JSON-RPC error of an upstream means."""
    kind = UpstreamRefused if number in REFUSALS else UpstreamInternalError
    return kind(upstream, number, message, data)


def raise_if_error(answer: Mapping[str, Any]) -> None:
    """Raise ToolReported or ToolReportedUncertain when the result is an error."""
    if answer.get("isError") is not True:
        return
    meta = answer.get("_meta")
    is_uncertain = isinstance(meta, dict) and meta.get("reversi/outcome") == "uncertain"
    raise (ToolReportedUncertain if is_uncertain else ToolReported)(answer)
