"""One call of an agent, from its arguments to its answer: through the schema, the gate, the journal and the upstream.

Whatever goes wrong is answered in words, with the step in `_meta` as soon as there is one. Only a call that its client
gave up is not answered: its step is settled before the cancellation goes on.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
from django.conf import settings

from approvals.operations.calls import Begun
from gateway.core import answers
from gateway.core.answers import Result
from gateway.core.results import value_of
from gateway.core.schemas import Schemas
from gateway.core.upstream_errors import ToolReported, ToolReportedUncertain, UnknownTool, raise_if_error
from gateway.journal import Journal
from gateway.mcp.calls import CallerGaveUp, CallFailed, CallRequest, CallResult, make_call
from gateway.mcp.catalog import Catalog, Target
from gateway.mcp.client_runs import ClientRuns
from gateway.mcp.failures import failed
from gateway.mcp.upstreams import Upstreams
from gateway.mcp.visits import Visit
from ledger.core.values import StepRecord
from reversi_sdk.errors import EffectUncertainError, ReversiError, ToolError
from reversi_sdk.model import Manifest
from rollback.core.effect_report import effect_report
from rollback.queries import keyed_digest_of, load_step

COMPLETE = (None, "complete")
ASKS = "the tool asked for input, which this gateway cannot pass on; what it did before it asked is unknown"
SETTLING_S = 30.0
STAGE, NO_DRAFTS = "stage", "unsupported_operation"

logger = logging.getLogger(__name__)


class ToolCalls:
    """Makes the calls of agents."""

    def __init__(
        self,
        journal: Journal,
        upstreams: Upstreams,
        catalog: Catalog,
        runs: ClientRuns,
        *,
        console_url: str | None = None,
    ) -> None:
        self._journal, self._upstreams = journal, upstreams
        self._catalog, self._runs, self._console_url = catalog, runs, console_url
        self._schemas = Schemas()
        self._under_way, self._changed = 0, anyio.Event()

    async def call(self, visit: Visit, tool: str, arguments: Mapping[str, Any]) -> Result:
        """Make a call and return what is answered; raises nothing but a cancellation."""
        try:
            async with self._counted():
                return await self._call(visit, tool, arguments)
        except UnknownTool:
            return answers.unknown_tool(tool, self._catalog.names)
        except Exception as error:  # noqa: BLE001  # a model cannot read an error of the protocol
            return failed(error, console_url=self._console_url)

    async def settled(self) -> None:
        """Wait until no call is under way any more: what was given up is written down."""
        with anyio.move_on_after(SETTLING_S, shield=True):
            while self._under_way:
                await self._changed.wait()

    @asynccontextmanager
    async def _counted(self) -> AsyncIterator[None]:
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1
            changed, self._changed = self._changed, anyio.Event()
            changed.set()

    async def _call(self, visit: Visit, tool: str, arguments: Mapping[str, Any]) -> Result:
        target = await self._catalog.find(tool)
        if visit.meta.get(STAGE, False) is not False:
            # Never passed over: the caller counts on a draft, and would get the real thing.
            return answers.failure(NO_DRAFTS, "drafts are not there yet; nothing was done", "Call without _meta.stage.")
        problems = self._schemas.problems(tool, target.schema, arguments)
        if problems:
            return answers.invalid_arguments(tool, problems)
        run = await self._runs.of(visit)
        request = CallRequest(
            run_id=run.id,
            principal=visit.caller.username,
            tool=tool,
            args=arguments,
            idempotency_key=visit.idempotency_key,
            upstream_of=lambda _: target.journal_name,
        )
        return await self._made(visit, request, target)

    async def _made(self, visit: Visit, request: CallRequest, target: Target) -> Result:
        sending = _Sending(visit, target)
        try:
            called = await make_call(
                self._journal, request, execute=sending.execute, reader=self._reader(target.upstream_name)
            )
        except CallFailed as call_failed:
            return await self._with_meta(_failed_answer(call_failed), call_failed)
        return await self._with_meta(sending.answer, called)

    def _reader(self, upstream: str) -> Any:
        async def read(tool: str, arguments: Mapping[str, Any]) -> Any:
            timeout_ms = int(settings.GATEWAY_TIMEOUT_MS)
            return await self._upstreams.read(tool, arguments, timeout_ms=timeout_ms, upstream=upstream)

        return read

    async def _with_meta(self, answer: Mapping[str, Any], ended: CallResult | CallFailed) -> Result:
        effect = await self._effect(ended.step)
        observed = answers.observed_meta(ended.notes, ended.violations)
        return answers.with_meta(answer, {**answers.step_meta(ended.step), **effect, **observed})

    async def _effect(self, step: StepRecord) -> dict[str, Any]:
        """Return the report about the effect; the call was made, so it is answered without when it cannot be had."""
        try:
            return {answers.META_EFFECT: await self._journal.run(_effect_of, step)}
        except Exception:
            logger.exception("the effect of step %d of run %s cannot be reported", step.number, step.run_id)
            return {}


class _Sending:
    """Sends one call, and keeps what the upstream answered."""

    def __init__(self, visit: Visit, target: Target) -> None:
        self._visit, self._target = visit, target
        self.answer: Mapping[str, Any] = {}
        self._is_unsent = False

    def _note_unsent(self) -> None:
        self._is_unsent = True

    async def execute(self, arguments: dict[str, Any], key: str | None, begun: Begun) -> Any:
        """Call the tool and return its value (D15); raises what its answer, or the lack of one, means."""
        target = self._target
        if target.upstream is None:
            raise target.trouble or UnknownTool(begun.step.tool)
        try:
            answer = await target.upstream.call(
                target.own_name,
                arguments,
                timeout_ms=begun.timeout_ms,
                idempotency_key=key if _goes_in_meta(begun.manifest) else None,
                meta=self._visit.trace,
                on_progress=self._visit.report,
                on_unsent=self._note_unsent,
            )
        except anyio.get_cancelled_exc_class() as interruption:
            if self._is_unsent:
                raise CallerGaveUp(interruption, was_sent=False) from None
            raise
        raise_if_error(answer)
        if answer.get("resultType") not in COMPLETE:
            raise EffectUncertainError(ASKS)
        self.answer = answer
        return value_of(answer)


def _goes_in_meta(manifest: Manifest | None) -> bool:
    return manifest is not None and manifest.key_carrier is not None and manifest.key_carrier.argument is None


def _failed_answer(call_failed: CallFailed) -> Mapping[str, Any]:
    """Return what the tool itself answered, where it did and knows; else our words."""
    cause, step = call_failed.cause, call_failed.step
    if isinstance(cause, ToolReported | ToolReportedUncertain):
        return cause.answer
    code = cause.code if isinstance(cause, ReversiError) else ToolError.code
    return answers.unsuccessful(step, code, step.error or str(cause) or type(cause).__name__)


def _effect_of(step: StepRecord) -> Mapping[str, Any]:
    loaded = load_step(step.run_id, step.number)
    return effect_report(loaded, keyed_digest=keyed_digest_of(step.run_id))
