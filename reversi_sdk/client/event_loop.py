"""Driving flows inside an event loop, with httpx.

When the caller is cancelled while its tool runs, the flow still reports what is known: the rest of it runs in a task
that the cancellation does not reach. An important request that is under way is finished for the same reason.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import httpx

from reversi_sdk.client.addresses import Address
from reversi_sdk.client.effects import Effect, Flow, Invoke, NoAnswer, Pause, Send
from reversi_sdk.client.wire import Answer, Request

T = TypeVar("T")


class EventLoop:
    """Performs effects in the running event loop; plain functions of the caller run in a thread."""

    def __init__(self, address: Address, *, timeout: float, trusts_environment: bool = True) -> None:
        self._address, self._timeout = address, timeout
        self._http = httpx.AsyncClient(headers=address.headers, trust_env=trusts_environment, follow_redirects=False)
        # The loop itself holds tasks weakly.
        self._kept: set[asyncio.Task[Any]] = set()

    async def run(self, flow: Flow[T], error: BaseException | None = None) -> T:
        """Run a flow to its end, beginning with an error when one is given."""
        value: Any = None
        while True:
            try:
                effect = flow.send(value) if error is None else flow.throw(error)
            except StopIteration as stop:
                result: T = stop.value
                return result
            value, error = None, None
            try:
                value = await self._perform(effect)
            except asyncio.CancelledError as cancelled:
                return await self._finished(self.run(flow, cancelled))
            except BaseException as raised:  # noqa: BLE001  # the flow decides, and raises it on
                error = raised

    async def close(self) -> None:
        """Finish what must be finished and close the connections."""
        if self._kept:
            await asyncio.gather(*self._kept, return_exceptions=True)
        await self._http.aclose()

    async def _perform(self, effect: Effect) -> Any:
        match effect:
            case Send(request, is_important):
                sending = self._send(request)
                return await (self._finished(sending) if is_important else sending)
            case Pause(ms):
                return await asyncio.sleep(ms / 1000)
            case Invoke(call):
                return await _called(call)

    async def _finished(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the work to its end, also when the caller is cancelled meanwhile, and only then say so."""
        task = asyncio.ensure_future(work)
        self._kept.add(task)
        task.add_done_callback(self._kept.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.done():
                await asyncio.wait([task])
            raise

    async def _send(self, request: Request) -> Answer:
        limit = self._timeout + request.extra_wait_ms / 1000
        try:
            async with asyncio.timeout(limit):
                response = await self._http.request(
                    request.method,
                    self._address.url_of(request.path),
                    params=list(request.params),
                    content=request.content,
                    headers=request.headers,
                    timeout=httpx.Timeout(limit, connect=min(self._timeout, 10.0)),
                )
        except (httpx.TransportError, httpx.DecodingError, TimeoutError) as error:
            raise NoAnswer(type(error).__name__) from error
        return Answer(response.status_code, dict(response.headers), response.content)


async def _called(call: Callable[[], Any]) -> Any:
    function = getattr(call, "func", call)
    value = call() if inspect.iscoroutinefunction(function) else await asyncio.to_thread(call)
    return await value if inspect.isawaitable(value) else value
