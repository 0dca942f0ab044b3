"""An MCP server as an upstream: one session at a time, opened again when it ends.

One task owns the session. It waits longer after each failure; a call that finds the upstream down wakes it and waits a
while before it gives up, having sent nothing. An upstream that lets two calls in a row time out, and then does not
answer when it is asked whether it still lives, is started again.
"""

from __future__ import annotations

import logging
import random
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import anyio
from anyio.abc import TaskStatus
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import HEADER_MISMATCH

from gateway.core.backoff import restart_wait_s
from gateway.core.upstream_errors import UpstreamRefused, UpstreamTimeout, UpstreamUnavailable
from gateway.core.upstream_specs import UpstreamSpec, session_name
from gateway.mcp.opening import DiscoveryFatal, open_session
from gateway.mcp.session import OnUnsent, Session
from gateway.mcp.tool_lists import ToolList, fetch_tools
from gateway.mcp.upstream import State, ToolObject
from reversi_sdk.errors import EffectUncertainError, ReversiError

CONNECT_PATIENCE_S = 10.0
# The first may have begun before the call came.
FAILED_TRIES = 2
STABLE_S = 5.0
TIMEOUTS_IN_A_ROW = 2
LIFE_SIGN_MS = 2000
SHORTEST_FRESH_S = 10.0
SENDS = 3

logger = logging.getLogger(__name__)


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
        self._session_id = _new_session_id()
        self._why = "is starting"
        self._is_tried = self._is_old = False
        self._failed_tries = 0
        self._changed, self._wanted = anyio.Event(), anyio.Event()
        self._restart, self._suspicion = anyio.Event(), anyio.Event()
        self._tools: ToolList | None = None
        self._tools_since = 0.0
        self._known: Sequence[ToolObject] | None = None
        self._tool_changes = 0
        self._timeouts = 0

    @property
    def name(self) -> str:
        """What it is called."""
        return self.spec.name

    @property
    def journal_name(self) -> str:
        """What steps remember it by: its name, and of a live one the session that goes on, or comes next."""
        return session_name(self.spec.name, self._session_id) if self.is_live else self.spec.name

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
        if self._open is not None:
            return State.READY
        return State.DOWN if self._is_tried else State.STARTING

    @property
    def why(self) -> str:
        """What is known about why it is not ready."""
        return self._why

    @property
    def known_tools(self) -> Sequence[ToolObject] | None:
        """Its tools as it listed them last, None when nobody has seen them."""
        return self._known

    @property
    def _open(self) -> Session | None:
        return None if self._session is None or self._session.is_over else self._session

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Keep a session open until cancelled; `started` is told when the first try is over, well or not."""
        failures = 0
        while True:
            served_s = await self._serve_once(task_status)
            self._tell(None)
            self._tried(task_status)
            failures = 0 if served_s > STABLE_S else failures + 1
            logger.warning("the upstream %s %s; it is started again", self.name, self._why)
            await self._rest(restart_wait_s(failures, chance=self._chance()))

    async def _serve_once(self, task_status: TaskStatus[None]) -> float:
        """Open a session and keep it to its end; return how long it served."""
        self._restart, self._suspicion = anyio.Event(), anyio.Event()
        since: float | None = None
        try:
            async with open_session(self.spec, on_tools_changed=self._forget_tools, is_old=self._is_old) as session:
                since = anyio.current_time()
                self._tell(session)
                self._tried(task_status)
                await self._until_its_end(session)
                self._why = session.describe_end()
        except UpstreamUnavailable as unavailable:
            self._why, self._is_old = unavailable.why, isinstance(unavailable, DiscoveryFatal)
        except Exception as broken:  # whatever ends a session, the next one is tried
            logger.warning("the session with the upstream %s broke", self.name, exc_info=broken)
            self._why = "broke off its session"
        self._failed_tries += since is None
        return 0.0 if since is None else anyio.current_time() - since

    async def _until_its_end(self, session: Session) -> None:
        async with anyio.create_task_group() as tasks:
            for waiting in (session.ended.wait, self._restart.wait):
                tasks.start_soon(_then_cancel, waiting, tasks.cancel_scope)
            tasks.start_soon(self._look_for_life, session)
        if not session.is_over:
            session.close("did not answer any more")

    async def _look_for_life(self, session: Session) -> None:
        """Whenever calls time out in a row, ask for any sign of life; without one the session must end."""
        while True:
            await self._suspicion.wait()
            self._suspicion = anyio.Event()
            try:
                await session.request("server/discover" if session.is_modern else "ping", {}, timeout_ms=LIFE_SIGN_MS)
            except (UpstreamTimeout, UpstreamUnavailable):
                self._restart.set()
            except (ReversiError, EffectUncertainError):
                continue

    def _tried(self, task_status: TaskStatus[None]) -> None:
        if not self._is_tried:
            self._is_tried = True
            task_status.started()

    async def _rest(self, wait_s: float) -> None:
        """Wait, at most so long; a call that comes meanwhile ends the longer waits."""
        self._wanted = anyio.Event()
        await anyio.sleep(min(wait_s, 1.0))
        with anyio.move_on_after(wait_s - 1.0):
            await self._wanted.wait()

    def _tell(self, session: Session | None) -> None:
        if self._session is not None:
            self._session_id = _new_session_id()
        self._session, self._timeouts = session, 0
        self._forget_tools()
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    def _forget_tools(self) -> None:
        self._tools = None
        self._tool_changes += 1

    async def _ready(self) -> Session:
        """Return an open session, waiting for one a while; raises UpstreamUnavailable."""
        failed = self._failed_tries
        with anyio.move_on_after(self._patience_s):
            while self._failed_tries - failed < FAILED_TRIES:
                if (session := self._open) is not None:
                    return session
                if self._session is not None and self._session.is_given_up:
                    # Over HTTP nothing else tells the owner.
                    self._restart.set()
                self._wanted.set()
                await self._changed.wait()
        raise UpstreamUnavailable(self.name, self._why)

    async def list_tools(self, *, is_fresh: bool = False) -> Sequence[ToolObject]:
        """Return its tools as it lists them, from memory unless a fresh look is asked for."""
        known = self._tools
        if known is None or is_fresh or self._is_stale(known):
            changes, session = self._tool_changes, await self._ready()
            known = await self._fetch(session)
            self._known = known.tools
            # What changed while it was told may not be in it.
            if changes == self._tool_changes:
                self._tools, self._tools_since = known, anyio.current_time()
        return known.tools

    async def _fetch(self, session: Session) -> ToolList:
        try:
            return await fetch_tools(session)
        except (UpstreamRefused, EffectUncertainError) as error:
            # A listing changes nothing: whatever became of it, nothing of the call that needs it was sent.
            raise UpstreamUnavailable(self.name, f"does not list its tools: {error}") from error

    def _is_stale(self, known: ToolList) -> bool:
        age_s = anyio.current_time() - self._tools_since
        return known.fresh_s is not None and age_s > max(known.fresh_s, SHORTEST_FRESH_S)

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        timeout_ms: int,
        idempotency_key: str | None = None,
        meta: Mapping[str, Any] | None = None,
        on_progress: ProgressFnT | None = None,
        on_unsent: OnUnsent | None = None,
    ) -> dict[str, Any]:
        """Call a tool and return the result as sent, an error result too; else raise one of the upstream errors.

        A session that ends before anything was sent, or refuses because it has ended, is replaced, and the call sent
        by the next one; not where it is live, since the next one is another place.
        """
        session_id = self._session_id
        key = {} if idempotency_key is None else {"idempotency_key": idempotency_key}
        said = {**(meta or {}), **key}
        params = {"name": tool, "arguments": dict(arguments), **({"_meta": said} if said else {})}
        for sends_left in reversed(range(SENDS)):
            session = await self._ready_for_call(on_unsent)
            if self.is_live and session_id != self._session_id:
                raise UpstreamUnavailable(self.name, "has begun another session, which knows nothing of the one before")
            try:
                answer = await session.request(
                    "tools/call", params, timeout_ms=timeout_ms, on_progress=on_progress, on_unsent=on_unsent
                )
            except (UpstreamUnavailable, UpstreamRefused) as undone:
                if not self._may_send_again(session, undone) or not sends_left:
                    raise
            except UpstreamTimeout:
                self._note_timeout()
                raise
            else:
                self._timeouts = 0
                return answer
        raise UpstreamUnavailable(self.name, self._why)

    async def _ready_for_call(self, on_unsent: OnUnsent | None) -> Session:
        try:
            session = await self._ready()
            if session.is_modern and self._tools is None:
                # Which arguments go into headers stands in the tools' schemas.
                await self.list_tools()
            return session
        except anyio.get_cancelled_exc_class():
            if on_unsent is not None:
                on_unsent()
            raise

    def _may_send_again(self, session: Session, undone: ReversiError) -> bool:
        if session.is_over:
            self._restart.set()
            return True
        if isinstance(undone, UpstreamUnavailable):
            self._note_timeout()
            return False
        is_outdated = isinstance(undone, UpstreamRefused) and undone.number == HEADER_MISMATCH
        if is_outdated:
            self._forget_tools()
        return is_outdated

    def _note_timeout(self) -> None:
        self._timeouts += 1
        if self._timeouts >= TIMEOUTS_IN_A_ROW:
            self._suspicion.set()


def _new_session_id() -> str:
    return secrets.token_hex(4)


async def _then_cancel(waiting: Callable[[], Any], scope: anyio.CancelScope) -> None:
    await waiting()
    scope.cancel()
