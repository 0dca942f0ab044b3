"""An upstream as the gateway keeps it: one session at a time, opened again when it ends.

One task owns the session. It waits longer after each failure; a call that finds the upstream down wakes it and waits a
while before it gives up, having sent nothing. An upstream that lets two calls in a row time out is started again.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol

import anyio
from anyio.abc import TaskStatus
from mcp.shared.dispatcher import ProgressFnT

from gateway.core.backoff import restart_wait_s
from gateway.core.upstream_errors import UpstreamRefused, UpstreamTimeout, UpstreamUnavailable
from gateway.core.upstream_specs import UpstreamSpec
from gateway.mcp.http_transport import GONE
from gateway.mcp.session import Session, open_session

LIST_TIMEOUT_MS = 20_000
CONNECT_PATIENCE_S = 10.0
STABLE_S = 5.0
TIMEOUTS_IN_A_ROW = 2
# A listing that goes on forever must not.
MOST_PAGES = 200

logger = logging.getLogger(__name__)

ToolObject = dict[str, Any]


class State(StrEnum):
    """Whether calls can be sent."""

    STARTING = "starting"
    READY = "ready"
    DOWN = "down"


class Upstream(Protocol):
    """Tools that are reached by their own names, whatever stands behind them."""

    @property
    def name(self) -> str:
        """What steps remember it by."""

    @property
    def prefix(self) -> str:
        """What agents see in front of its tools' names."""

    @property
    def is_live(self) -> bool:
        """Whether only the gateway that holds its session may undo what it did."""

    @property
    def state(self) -> State:
        """Whether calls can be sent."""

    async def list_tools(self, *, is_fresh: bool = False) -> Sequence[ToolObject]:
        """Return its tools as it lists them, from memory unless a fresh look is asked for."""

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        timeout_ms: int,
        idempotency_key: str | None = None,
        meta: Mapping[str, Any] | None = None,
        on_progress: ProgressFnT | None = None,
    ) -> dict[str, Any]:
        """Call a tool and return the result as sent, an error result too; else raise one of the upstream errors."""


class ServerUpstream:
    """An MCP server by command or URL; `run` must be going on in a task group while it is used."""

    def __init__(
        self,
        spec: UpstreamSpec,
        *,
        patience_s: float = CONNECT_PATIENCE_S,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.spec, self._patience_s, self._chance = spec, patience_s, chance
        self._session: Session | None = None
        self._why = "is starting"
        self._is_tried = False
        self._changed = anyio.Event()
        self._wanted = anyio.Event()
        self._restart = anyio.Event()
        self._tools: Sequence[ToolObject] | None = None
        self._timeouts = 0

    @property
    def name(self) -> str:
        """What steps remember it by."""
        return self.spec.name

    @property
    def prefix(self) -> str:
        """What agents see in front of its tools' names."""
        return self.spec.prefix

    @property
    def is_live(self) -> bool:
        """Whether only the gateway that holds its session may undo what it did."""
        return self.spec.is_live

    @property
    def state(self) -> State:
        """Whether calls can be sent."""
        if self._open_session is not None:
            return State.READY
        return State.DOWN if self._is_tried else State.STARTING

    @property
    def why(self) -> str:
        """What is known about why it is not ready."""
        return self._why

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Keep a session open until cancelled; `started` is told when the first try is over, well or not."""
        failures = 0
        while True:
            began_at = anyio.current_time()
            await self._serve_once(task_status)
            self._tell(None)
            if not self._is_tried:
                self._is_tried = True
                task_status.started()
            failures = 0 if anyio.current_time() - began_at > STABLE_S else failures + 1
            wait_s = restart_wait_s(failures, chance=self._chance())
            logger.warning("the upstream %s %s; it is started again", self.name, self._why)
            await self._rest(wait_s)

    async def _serve_once(self, task_status: TaskStatus[None]) -> None:
        self._restart = anyio.Event()
        try:
            async with open_session(self.spec, on_tools_changed=self._forget_tools) as session:
                self._tell(session)
                if not self._is_tried:
                    self._is_tried = True
                    task_status.started()
                await _first_of(session.ended, self._restart)
                self._why = session.describe_end() if session.ended.is_set() else "did not answer any more"
                self._tell(None)
        except UpstreamUnavailable as unavailable:
            self._why = unavailable.why
        except Exception as broken:  # whatever ends a session, the next one is tried
            logger.exception("the session with the upstream %s broke", self.name, exc_info=broken)
            self._why = "broke off its session"

    async def _rest(self, wait_s: float) -> None:
        """Wait, at most so long; a call that comes meanwhile ends the longer waits."""
        self._wanted = anyio.Event()
        await anyio.sleep(min(wait_s, 1.0))
        with anyio.move_on_after(wait_s - 1.0):
            await self._wanted.wait()

    def _tell(self, session: Session | None) -> None:
        self._session, self._tools, self._timeouts = session, None, 0
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    def _forget_tools(self) -> None:
        self._tools = None

    @property
    def _open_session(self) -> Session | None:
        session = self._session
        is_usable = session is not None and not session.ended.is_set() and not self._restart.is_set()
        return session if is_usable else None

    async def _ready(self) -> Session:
        """Return an open session, waiting for one a while; raises UpstreamUnavailable."""
        with anyio.move_on_after(self._patience_s):
            while (session := self._open_session) is None:
                self._wanted.set()
                await self._changed.wait()
            return session
        raise UpstreamUnavailable(self.name, self._why)

    async def list_tools(self, *, is_fresh: bool = False) -> Sequence[ToolObject]:
        """Return its tools as it lists them, from memory unless a fresh look is asked for."""
        known = self._tools
        if known is not None and not is_fresh:
            return known
        self._tools = tools = await self._list(await self._ready())
        return tools

    async def _list(self, session: Session) -> Sequence[ToolObject]:
        tools: list[ToolObject] = []
        params: dict[str, Any] = {}
        for _ in range(MOST_PAGES):
            page = await session.request("tools/list", params, timeout_ms=LIST_TIMEOUT_MS)
            tools.extend(page["tools"])
            params = {"cursor": page.get("nextCursor")}
            if params["cursor"] is None:
                return tuple(tools)
        raise UpstreamUnavailable(self.name, f"lists its tools on more than {MOST_PAGES} pages")

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        timeout_ms: int,
        idempotency_key: str | None = None,
        meta: Mapping[str, Any] | None = None,
        on_progress: ProgressFnT | None = None,
    ) -> dict[str, Any]:
        """Call a tool and return the result as sent, an error result too; else raise one of the upstream errors."""
        session = await self._ready()
        key = {} if idempotency_key is None else {"idempotency_key": idempotency_key}
        said = {**(meta or {}), **key}
        params = {"name": tool, "arguments": dict(arguments), **({"_meta": said} if said else {})}
        try:
            answer = await session.request("tools/call", params, timeout_ms=timeout_ms, on_progress=on_progress)
        except UpstreamTimeout:
            self._note_timeout()
            raise
        except UpstreamRefused as refused:
            if refused.number == GONE:
                self._restart.set()
            raise
        self._timeouts = 0
        return answer

    def _note_timeout(self) -> None:
        self._timeouts += 1
        if self._timeouts >= TIMEOUTS_IN_A_ROW:
            self._restart.set()


async def _first_of(*events: anyio.Event) -> None:
    async with anyio.create_task_group() as tasks:

        async def wait(event: anyio.Event) -> None:
            await event.wait()
            tasks.cancel_scope.cancel()

        for event in events:
            tasks.start_soon(wait, event)
