"""One session with an upstream: the handshake of whichever revision it speaks, then requests and answers without loss.

The library's session makes the handshake and keeps the wire; requests go past its models, which would drop what they do
not know. Each way for a request to end is an exception that says whether anything was sent (D109).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version as version_of
from itertools import count
from typing import Any, Protocol

import anyio
from mcp.client.session import ClientSession
from mcp.shared.dispatcher import CallOptions, ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import CONNECTION_CLOSED, RequestId
from mcp_types import methods as protocol
from pydantic import ValidationError

from gateway.core.upstream_errors import (
    UpstreamAnswerInvalid,
    UpstreamAnswerLost,
    UpstreamInternalError,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnavailable,
    error_of,
)
from gateway.core.upstream_specs import UpstreamSpec
from gateway.mcp.envelope import Mirrored, enveloped, is_modern
from gateway.mcp.own_errors import Trouble, trouble_of
from gateway.mcp.progress import Progress

CLIENT = {"name": "reversi-gateway", "version": version_of("reversi")}
# The library counts its own requests from one.
FIRST_REQUEST = 1000
LISTENING = {"notifications": {"toolsListChanged": True}}
LISTEN_AGAIN_S = 5.0

OnUnsent = Callable[[], None]


class Wire(Protocol):
    """What a session must know of the wire below it."""

    is_over: bool
    # Numbers under which the library itself says, over this wire, that it heard nothing or could not read it.
    made_by_library: Mapping[int, Trouble]

    def describe_end(self) -> str:
        """Say how the wire ended."""

    def settle(self, call: RequestId) -> bool:
        """Tell of a request that has ended whether it certainly never arrived, and forget it."""


class Dispatcher(JSONRPCDispatcher):
    """The library's, which also tells when the wire has ended."""

    def __init__(self, *streams: Any) -> None:
        super().__init__(*streams)
        self.ended = anyio.Event()

    async def run(self, *args: Any, **kwargs: Any) -> None:
        try:
            await super().run(*args, **kwargs)
        finally:
            self.ended.set()


@dataclass(slots=True)
class Session:
    """An open session; it lives until `ended` is set."""

    spec: UpstreamSpec
    version: str
    client: ClientSession
    _dispatcher: Dispatcher
    _wire: Wire
    # Arguments that go into headers too, by tool; the owner fills it when it lists the tools.
    mirrored: dict[str, Mirrored] = field(default_factory=dict)
    is_listening: bool = False
    _closed_because: str | None = None
    _requests: Iterator[int] = field(default_factory=lambda: count(FIRST_REQUEST))

    @property
    def ended(self) -> anyio.Event:
        """Set when nothing more can come."""
        return self._dispatcher.ended

    @property
    def is_over(self) -> bool:
        """Whether nothing more can be sent."""
        return self._closed_because is not None or self._wire.is_over or self.ended.is_set()

    @property
    def is_given_up(self) -> bool:
        """Whether nothing more is sent although the wire has not ended."""
        return self._closed_because is not None

    @property
    def is_modern(self) -> bool:
        """Whether the upstream's revision is of 2026 or later."""
        return is_modern(self.version)

    def close(self, because: str) -> None:
        """Send nothing more; whoever waits for an answer is told why when the owner lets the session go."""
        self._closed_because = self._closed_because or because

    def describe_end(self) -> str:
        """Say how the session ended."""
        return self._closed_because or self._wire.describe_end()

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        timeout_ms: int,
        on_progress: ProgressFnT | None = None,
        on_unsent: OnUnsent | None = None,
    ) -> dict[str, Any]:
        """Send a request and return its result as it was sent.

        Raises what `gateway.core.upstream_errors` has. `on_unsent` is told when whoever waits is cancelled and nothing
        of the request was sent.
        """
        if self.is_over:
            raise UpstreamUnavailable(self.spec.name, self.describe_end())
        mirrored = self.mirrored.get(str(params.get("name")))
        sent, options = enveloped(method, params, version=self.version, client=CLIENT, mirrored=mirrored)
        self._refuse_what_is_no_json(sent)
        options["request_id"] = next(self._requests)
        progress = None if on_progress is None else Progress(on_progress)
        if progress is not None:
            options["on_progress"] = progress.hear
        answer = await self._answer(method, sent, options, timeout_ms, on_unsent)
        if progress is not None:
            await progress.passed_on()
        self._refuse_what_is_no_result(method, answer)
        return answer

    async def _answer(
        self, method: str, params: Mapping[str, Any], options: CallOptions, timeout_ms: int, on_unsent: OnUnsent | None
    ) -> dict[str, Any]:
        call = options["request_id"]
        try:
            with anyio.fail_after(timeout_ms / 1000):
                answer = await self._dispatcher.send_raw_request(method, params, options)
        except TimeoutError as error:
            if self._wire.settle(call):
                raise UpstreamUnavailable(self.spec.name, "takes no requests in") from error
            raise UpstreamTimeout(self.spec.name, timeout_ms) from error
        except MCPError as error:
            raise self._meaning(error, is_unsent=self._wire.settle(call)) from error
        except anyio.get_cancelled_exc_class():
            if self._wire.settle(call) and on_unsent is not None:
                on_unsent()
            raise
        self._wire.settle(call)
        return answer

    def _meaning(self, error: MCPError, *, is_unsent: bool) -> Exception:
        if is_unsent:
            return UpstreamUnavailable(self.spec.name, self.describe_end())
        trouble = self._trouble(error)
        if trouble is None:
            return error_of(self.spec.name, error.error.code, error.error.message, error.error.data)
        if trouble is Trouble.SESSION_GONE and not self.is_modern:
            self.close(f"ended the session ({error})")
        return self._worded(trouble, error)

    def _trouble(self, error: MCPError) -> Trouble | None:
        """Return what an error means that is not the server's own."""
        own, number = trouble_of(error), error.error.code
        if own is not None:
            return own
        if number == CONNECTION_CLOSED and self.is_over:
            return Trouble.ANSWER_LOST
        return self._wire.made_by_library.get(number)

    def _worded(self, trouble: Trouble, error: MCPError) -> Exception:
        name, said = self.spec.name, error.error.message
        match trouble:
            case Trouble.NOT_SENT:
                return UpstreamUnavailable(name, f"cannot be reached: {said}")
            case Trouble.ANSWER_LOST:
                ended = said if trouble_of(error) else f"broke off the answer ({said})"
                return UpstreamAnswerLost(name, self.describe_end() if self.is_over else ended)
            case Trouble.ANSWER_INVALID:
                return UpstreamAnswerInvalid(name, said)
            case Trouble.BROKE:
                return UpstreamInternalError(name, error.error.code, said)
            case Trouble.REFUSED | Trouble.SESSION_GONE:
                return UpstreamRefused(name, error.error.code, said)

    def _refuse_what_is_no_json(self, params: Mapping[str, Any]) -> None:
        try:
            json.dumps(params, allow_nan=False, ensure_ascii=False).encode()
        except (ValueError, TypeError, RecursionError) as error:
            raise UpstreamUnavailable(self.spec.name, f"was not asked, the arguments are no JSON: {error}") from error

    def _refuse_what_is_no_result(self, method: str, answer: Mapping[str, Any]) -> None:
        try:
            json.dumps(answer, allow_nan=False)
            protocol.validate_server_result(method, self.version, answer)
        except ValidationError as error:
            raise UpstreamAnswerInvalid(self.spec.name, f"its result is none of {method}: {_first(error)}") from error
        except (KeyError, ValueError, RecursionError) as error:
            raise UpstreamAnswerInvalid(self.spec.name, f"its result is none of {method}: {error}") from error

    async def listen(self, on_tools_changed: Callable[[], None]) -> None:
        """Have the upstream tell when its tools change, for as long as it does."""
        while not self.is_over:
            sent, options = enveloped("subscriptions/listen", LISTENING, version=self.version, client=CLIENT)
            options["request_id"] = f"listen-{next(self._requests)}"
            self.is_listening = True
            try:
                await self._dispatcher.send_raw_request("subscriptions/listen", sent, options)
            except MCPError as error:
                if self._trouble(error) is None:
                    # The server's own words: it tells nobody.
                    return
            finally:
                self.is_listening = False
                on_tools_changed()
            await anyio.sleep(LISTEN_AGAIN_S)


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(str(step) for step in first['loc'])}: {first['msg']}"
