"""What the parts of a running job share: the claim, the tools, the clock, and the sends and reads on the record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from django.conf import settings

from ledger.core.values import EventDraft
from ledger.operations.compensations import record_note
from ledger.operations.journal import lock_run
from reversi_sdk.model import Manifest
from reversi_site.kit.clock import Clock
from reversi_site.kit.transactions import durable
from rollback.core.keys import KeyedDigest
from rollback.core.options import RollbackOptions
from rollback.core.ports import Tools
from rollback.core.progress import OnProgress, Progress
from rollback.operations.jobs import Claim, hold

Sleep = Callable[[float], None]
Chance = Callable[[], float]


@dataclass(slots=True)
class Work:
    """A job under way. `sleep` and `chance` are passed in so that a test needs neither time nor luck."""

    claim: Claim
    tools: Tools
    clock: Clock
    sleep: Sleep
    chance: Chance
    keyed_digest: KeyedDigest
    on_progress: OnProgress
    described: Mapping[str, Manifest] = field(default_factory=dict)
    done: int = 0
    total: int = 0

    @property
    def options(self) -> RollbackOptions:
        """What the operator asked for."""
        return self.claim.job.options

    @property
    def run_id(self) -> str:
        """The run that is worked on."""
        return self.claim.run_id

    def advance(self, step: int, tool: str, word: str) -> None:
        """Count one step as left behind, and tell."""
        self.done += 1
        self.on_progress(Progress(self.done, self.total, step, tool, word))

    def note(self, draft: EventDraft) -> None:
        """Write an event that changes no state, under the fence."""
        with durable():
            run = lock_run(self.run_id, fence=self.claim.fence)
            record_note(
                run=run,
                number=draft.step,
                kind=draft.kind,
                data=draft.data,
                actor=self.claim.actor,
                now=self.clock.now(),
            )

    def hold(self, busy_ms: int) -> None:
        """Renew the lease within the caller's block."""
        hold(self.claim, busy_ms=busy_ms, done=self.done, total=self.total)


def usual_timeout_ms() -> int:
    """How long a tool may take when its manifest does not say."""
    return int(settings.GATEWAY_TIMEOUT_MS)
