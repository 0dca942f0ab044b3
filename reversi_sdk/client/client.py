"""The client for programs that wait: `Client` and `Run`.

Documents are what the API answers, as plain dictionaries. A run is not closed at the end of a `with` block unless that
was asked for: it can be continued later, by its id, and planned and rolled back either way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from reversi_sdk.client import flows, routes
from reversi_sdk.client.addresses import Address, address_of, worker_name
from reversi_sdk.client.calling import Made, make_call
from reversi_sdk.client.delivery import Delivery, Patience
from reversi_sdk.client.effects import Flow, real_world
from reversi_sdk.client.flows import RollbackOptions, Step
from reversi_sdk.client.functions import Compensate, Execute, Probe, Reader, Verify
from reversi_sdk.client.jobs import OnProgress
from reversi_sdk.client.outgoing import ABSENT
from reversi_sdk.client.reconciling import reconcile_run
from reversi_sdk.client.threads import Threads
from reversi_sdk.client.wire import Document

if TYPE_CHECKING:
    from pathlib import Path

    from reversi_sdk.client.embedded import EmbeddedServer

T = TypeVar("T")


class Client:
    """Speaks to one server with one API key; may be used by several threads at once.

    `timeout` bounds each request in seconds, `patience` how long requests are repeated.
    """

    def __init__(
        self, url: str, *, api_key: str | None = None, timeout: float = 30.0, patience: Patience | None = None
    ) -> None:
        self._set_up(address_of(url, api_key), timeout=timeout, patience=patience, server=None)

    @classmethod
    def embedded(
        cls,
        data: str | Path = "reversi-data",
        *,
        environ: Mapping[str, str] | None = None,
        timeout: float = 30.0,
        patience: Patience | None = None,
    ) -> Client:
        """Run the server as a private child process, for this process alone, and speak to it.

        It listens on a free loopback port, has its own worker, and ends with `close`, with the `with` block, or when
        this process dies. `environ` is added to what it inherits. Raises EmbeddedServerFailed.
        """
        from reversi_sdk.client.embedded import start_server

        server = start_server(data, environ=environ or {})
        client = cls.__new__(cls)
        client._set_up(server.address, timeout=timeout, patience=patience, server=server)
        return client

    def _set_up(
        self, address: Address, *, timeout: float, patience: Patience | None, server: EmbeddedServer | None
    ) -> None:
        self._address, self._server = address, server
        self._driver = Threads(address, timeout=timeout, trusts_environment=server is None)
        self._delivery = Delivery(real_world(), patience or Patience())

    @property
    def url(self) -> str:
        """The server's address."""
        return self._address.url

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections, and end the private server of an embedded client."""
        self._driver.close()
        if self._server is not None:
            self._server.stop()

    def run(
        self,
        id: str | None = None,
        *,
        actor: str | None = None,
        tenant: str | None = None,
        environment: str | None = None,
        mode: str | None = None,
        scope: Sequence[str] = (),
        reason: str = "",
        labels: Mapping[str, str] | None = None,
        close: bool = False,
    ) -> Run:
        """Open a run, or continue the own one of that id; `close=True` closes it at the end of the `with` block."""
        fields = flows.run_fields(
            id=id,
            actor=actor,
            tenant=tenant,
            environment=environment,
            mode=mode,
            scope=scope,
            reason=reason,
            labels=labels,
        )
        return Run(self, self._do(flows.opened(self._delivery, fields)), closes=close)

    def existing_run(self, run_id: str) -> Run:
        """Return a run to look at, plan or roll back, which somebody else may have opened."""
        return Run(self, self._do(self._delivery.documented(routes.get_run(run_id))), closes=False)

    def runs(self, *, limit: int | None = None, **filters: Any) -> list[Document]:
        """List runs, newest first: by `state, actor, tenant, environment, tool, since, until, attention`."""
        return self._do(flows.listed(self._delivery, routes.list_runs(filters), limit))

    def approvals(self, *, limit: int | None = None, **filters: Any) -> list[Document]:
        """List approval requests, newest first."""
        return self._do(flows.listed(self._delivery, routes.list_approvals(filters), limit))

    def approval(self, approval_id: str, *, wait: float = 0) -> Document:
        """Return an approval request; `wait` seconds for an answer if it has none yet."""
        return self._do(flows.approval(self._delivery, approval_id, wait))

    def approve(self, approval_id: str, *, reason: str = "") -> Document:
        """Vote for a call."""
        return self._do(self._delivery.documented(routes.vote(approval_id, "approve", reason)))

    def deny(self, approval_id: str, *, reason: str = "") -> Document:
        """Vote against a call; one denial denies it."""
        return self._do(self._delivery.documented(routes.vote(approval_id, "deny", reason)))

    def halt(self, reason: str, **scope: str) -> Document:
        """Block new calls, all or those of a scope: `tool, actor, tenant, environment` as globs."""
        return self._do(self._delivery.documented(routes.halt(reason, scope)))

    def resume(self, halt_id: str | None = None) -> Document:
        """Lift one halt, or all."""
        return self._do(self._delivery.documented(routes.resume(halt_id)))

    def halts(self) -> list[Document]:
        """List the halts that stand."""
        return self._do(flows.listed(self._delivery, routes.list_halts()))

    def _do(self, flow: Flow[T]) -> T:
        return self._driver.run(flow)


class Run:
    """One run of an agent; `id` names it wherever runs are named."""

    def __init__(self, client: Client, document: Document, *, closes: bool) -> None:
        self._client, self._closes = client, closes
        self._do, self._delivery = client._do, client._delivery  # the two halves of one client
        self.document = document
        self.id = str(document["id"])

    def __repr__(self) -> str:
        return f"Run({self.id!r})"

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._closes:
            self.close()

    def call(
        self,
        tool: str,
        args: Mapping[str, Any] | None = None,
        *,
        execute: Execute,
        reader: Reader | None = None,
        reason: str = "",
        depends_on: Sequence[Step] = (),
        idempotency_key: str | None = None,
        wait: float | bool | None = None,
    ) -> Any:
        """Make a call and return what `execute` returned; `perform` says more about it.

        Raises CallBlocked or ApprovalRequired (then nothing ran), OutcomeNotReported, and whatever `execute` raises.
        """
        return self.perform(
            tool,
            args,
            execute=execute,
            reader=reader,
            reason=reason,
            depends_on=depends_on,
            idempotency_key=idempotency_key,
            wait=wait,
        ).result

    def perform(
        self,
        tool: str,
        args: Mapping[str, Any] | None = None,
        *,
        execute: Execute,
        reader: Reader | None = None,
        reason: str = "",
        depends_on: Sequence[Step] = (),
        idempotency_key: str | None = None,
        wait: float | bool | None = None,
    ) -> Made:
        """Make a call and return its result with its step, key, notes and violations.

        `execute(args)` or `execute(args, key)` runs between `intended` and its outcome. `reader(tool, arguments)` makes
        the reads of the state before. `wait` seconds for an approval, or True for as long as it takes.
        """
        call = flows.planned_call(
            self.id,
            tool,
            args,
            execute=execute,
            reader=reader,
            reason=reason,
            depends_on=depends_on,
            idempotency_key=idempotency_key,
            wait=wait,
        )
        return self._do(make_call(self._delivery, call))

    def plan(self, *, steps: Sequence[Step] | None = None, to_step: Step | None = None) -> Document:
        """Return what a rollback would do; changes nothing."""
        return self._do(self._delivery.documented(routes.get_plan(self.id, flows.selection(steps, to_step))))

    def rollback(
        self,
        *,
        compensate: Compensate | None = None,
        verify: Verify | None = None,
        verifier: Reader | None = None,
        retry: Mapping[str, int] | None = None,
        steps: Sequence[Step] | None = None,
        to_step: Step | None = None,
        digest: str | None = None,
        approve_compensations: bool = False,
        overwrite: bool = False,
        close: bool = False,
        on_progress: OnProgress | None = None,
        timeout: float = 900.0,
    ) -> Document:
        """Roll back and return the report; look at its `complete`.

        Without `compensate` the server does it and this waits `timeout` seconds. With it this process does:
        `compensate(call)` runs an undo, `verify(call)` must return True, `verifier(tool, arguments)` makes the declared
        read-backs, `retry` is `{attempts, base_ms, max_ms}`.
        """
        options = RollbackOptions(
            compensate=compensate,
            verify=verify,
            verifier=verifier,
            retry=retry,
            steps=steps,
            to_step=to_step,
            digest=digest,
            approve_compensations=approve_compensations,
            overwrite=overwrite,
            close=close,
            on_progress=on_progress,
            timeout=timeout,
        )
        return self._do(flows.rolled_back(self._delivery, self.id, worker_name(), options))

    def report(self, *, steps: Sequence[Step] | None = None, to_step: Step | None = None) -> Document:
        """Return how the steps stand now."""
        return self._do(self._delivery.documented(routes.get_report(self.id, flows.selection(steps, to_step))))

    def verify(self, *, on_progress: OnProgress | None = None, timeout: float = 900.0) -> Document:
        """Have the server make the read-backs that never ran, and return the report."""
        return self._do(flows.verified(self._delivery, self.id, on_progress, timeout))

    def reconcile(self, probe: Probe | None = None) -> Document:
        """Ask `probe(step)` about each unresolved step and settle those it answers; returns `{settled, open}`.

        A probe returns None to leave a step, `"succeeded"`, `"failed"`, or `{status, result?, note?}`.
        """
        return self._do(reconcile_run(self._delivery, self.id, probe))

    def resolve(self, step: Step, status: str, *, note: str, result: Any = ABSENT) -> Document:
        """Settle a step by a person's word: `succeeded`, `failed` or `compensated`."""
        return self._do(flows.resolved(self._delivery, self.id, step, status=status, note=note, result=result))

    def steps(self) -> list[Document]:
        """List the steps, oldest first."""
        return self._do(flows.listed(self._delivery, routes.list_steps(self.id)))

    def step(self, step: Step) -> Document:
        """Return one step."""
        return self._do(self._delivery.documented(routes.get_step(self.id, flows.step_number(step))))

    def events(self) -> list[Document]:
        """List the journal entries, oldest first."""
        return self._do(flows.listed(self._delivery, routes.list_events(self.id)))

    def refresh(self) -> Document:
        """Look at the run again and return it."""
        self.document = self._do(self._delivery.documented(routes.get_run(self.id)))
        return self.document

    def close(self) -> Document:
        """Close the run: it takes no more calls, and can still be planned and rolled back."""
        self.document = self._do(self._delivery.documented(routes.close_run(self.id)))
        return self.document
