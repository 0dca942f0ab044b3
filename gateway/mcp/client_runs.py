"""Which run the calls of a visit belong to, and what `reversi.run` does about it (D110)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import replace

from approvals.core.people import Act
from approvals.operations.runs import close_run_for
from approvals.queries import get_run_for
from gateway.core.run_names import NamedBy, RunName, named_run
from gateway.journal import Journal
from gateway.mcp.visits import Visit
from gateway.operations.runs import current_run, open_another_run, open_named_run, present_run
from ledger.core.values import RunRecord
from reversi_sdk.errors import Conflict, InvalidInput
from reversi_site.kit.clock import Clock

# A handle that was forgotten only means that its client's current run is used again.
MOST_HANDLES = 10_000


class RunFixed(Conflict):
    """Whoever set the connection up decides its run."""

    code = "run_fixed"

    def __init__(self, run_id: str) -> None:
        super().__init__(f"every call of this connection belongs to run {run_id}, which was named from outside")


class RunRequestInvalid(InvalidInput):
    """The arguments of `reversi.run` contradict each other."""

    code = "run_request_invalid"


class ClientRuns:
    """The runs of a gateway's clients. The handles are this process's; everything else is in the store."""

    def __init__(self, journal: Journal, *, clock: Clock) -> None:
        self._journal, self._clock = journal, clock
        self._handles: OrderedDict[Hashable, str] = OrderedDict()

    async def of(self, visit: Visit) -> RunRecord:
        """Return the run of a call, opened if there is none."""
        return (await self._find(visit))[0]

    async def present(self, visit: Visit) -> str:
        """Return the id of the run that a call would belong to, and open none; raises BadRunId and NoPresentRun."""
        name = self.name(visit)
        if name is not None:
            return name.run_id
        found = self._journal.run(present_run, caller=visit.caller, terms=visit.terms, now=self._clock.now())
        return (await found).id

    def name(self, visit: Visit) -> RunName | None:
        """Return the run that the visit names, None when the client's current one is meant; raises BadRunId."""
        return named_run(outside=visit.outside, meta=visit.meta, handle=self._handles.get(visit.connection))

    async def take(self, visit: Visit, *, run_id: str | None, is_new: bool) -> tuple[RunRecord, bool]:
        """Make a run this connection's: the one named, a new one, or the one that calls belong to anyway.

        Raises RunFixed, RunRequestInvalid, and what opening a run raises.
        """
        if is_new and run_id is not None:
            raise RunRequestInvalid("new: a run of your own name is opened by id alone")
        self._require_free(visit, run_id, is_new)
        if is_new:
            opened = self._journal.run(open_another_run, caller=visit.caller, terms=visit.terms, now=self._clock.now())
            run, is_opened = await opened, True
        elif run_id is not None:
            run, is_opened = await self._named(visit, run_id)
        else:
            run, is_opened = await self._find(visit)
        self._keep(visit.connection, run.id)
        return run, is_opened

    async def close(self, visit: Visit, *, run_id: str | None) -> RunRecord:
        """Close a run of the caller's, the connection's own without an id; raises what closing a run raises."""
        closed_id = run_id if run_id is not None else await self.present(visit)
        if not visit.is_operator:
            # Behind the agents' door everybody is an agent, whatever else the key could do.
            await self._journal.run(
                get_run_for, caller=visit.caller, run_id=closed_id, own=Act.CLOSE_OWN_RUN, others=None
            )
        run = await self._journal.run(close_run_for, caller=visit.caller, run_id=closed_id, now=self._clock.now())
        if self._handles.get(visit.connection) == closed_id:
            del self._handles[visit.connection]
        return run

    async def _find(self, visit: Visit) -> tuple[RunRecord, bool]:
        name = self.name(visit)
        if name is not None:
            return await self._named(visit, name.run_id)
        return await self._journal.run(current_run, caller=visit.caller, terms=visit.terms, now=self._clock.now())

    async def _named(self, visit: Visit, run_id: str) -> tuple[RunRecord, bool]:
        return await self._journal.run(
            open_named_run, caller=visit.caller, run_id=run_id, terms=visit.terms, now=self._clock.now()
        )

    def _require_free(self, visit: Visit, run_id: str | None, is_new: bool) -> None:
        name = self.name(visit)
        is_fixed = name is not None and name.by is NamedBy.OUTSIDE
        if name is not None and is_fixed and (is_new or run_id not in (None, name.run_id)):
            raise RunFixed(name.run_id)

    def _keep(self, connection: Hashable, run_id: str) -> None:
        self._handles[connection] = run_id
        self._handles.move_to_end(connection)
        while len(self._handles) > MOST_HANDLES:
            self._handles.popitem(last=False)


def with_reason(visit: Visit, reason: str) -> Visit:
    """Return the visit with why its runs are opened."""
    return replace(visit, terms=replace(visit.terms, reason=reason))
