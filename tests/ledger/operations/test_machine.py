"""A machine of random, also illegal, moves: rows equal the fold of events, and the chain verifies, at every point."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ledger import queries
from ledger.core.errors import CallKeyTaken
from ledger.core.fold import fold_states
from ledger.core.statuses import ReadBack, SettledBy, StepState
from ledger.core.values import Outcome
from ledger.operations import compensations as undo
from ledger.operations.journal import LockedRun, lock_run
from ledger.operations.runs import take_run
from ledger.operations.steps import record_outcome, resolve_outcome, sweep_overdue
from reversi_sdk.errors import Conflict
from reversi_site.kit.transactions import durable
from tests.databases import Database
from tests.ledger.factories import NOW, intend, make_run

WHO: dict[str, Any] = {"actor": "someone", "now": NOW}
numbers = st.integers(0, 3)
outcomes = st.sampled_from([StepState.SUCCEEDED, StepState.FAILED, StepState.UNCERTAIN])


class JournalMachine(RuleBasedStateMachine):
    """Callers, sweeps, people and executors, in any order."""

    @initialize()
    def open(self) -> None:
        self.run_id = make_run().id
        self.fence = self.count = 0

    @rule(call_key=st.sampled_from([None, "k"]))
    def intend(self, call_key: str | None) -> None:
        with suppress(CallKeyTaken):
            intend(run_id=self.run_id, call_key=call_key)
            self.count += 1

    def attempt(self, operation: Any, **arguments: Any) -> None:
        try:
            operation(run_id=self.run_id, **arguments, **WHO)
        except Conflict:
            self.refusals = getattr(self, "refusals", 0) + 1

    @precondition(lambda self: self.count)
    @rule(number=numbers, state=outcomes, by=st.sampled_from(SettledBy))
    def complete(self, number: int, state: StepState, by: SettledBy) -> None:
        self.attempt(record_outcome, number=number % self.count, outcome=Outcome(state), by=by)

    @precondition(lambda self: self.count)
    @rule(number=numbers)
    def sweep(self, number: int) -> None:
        self.attempt(sweep_overdue, number=number % self.count)

    @precondition(lambda self: self.count)
    @rule(number=numbers, state=st.sampled_from([StepState.SUCCEEDED, StepState.FAILED]))
    def resolve(self, number: int, state: StepState) -> None:
        def operation(*, run_id: str, **who: Any) -> None:
            word: dict[str, Any] = {"state": state, "handle": None, "unrecoverable": None, "note": "seen"}
            with durable():
                resolve_outcome(run=lock_run(run_id), number=number % self.count, **word, **who)

        self.attempt(operation)

    @rule()
    def take_over(self) -> None:
        with durable():
            self.fence = take_run(run_id=self.run_id, **WHO)

    @precondition(lambda self: self.count)
    @rule(number=numbers, which=st.integers(0, 5), fence_age=st.sampled_from([0, 0, 0, 1]))
    def execute(self, number: int, which: int, fence_age: int) -> None:
        def operation(*, run_id: str, **who: Any) -> None:
            with durable():
                run = undo.lock_for_executor(run_id=run_id, fence=self.fence - fence_age)
                self._write(run, number % self.count, which, who)

        self.attempt(operation)

    @staticmethod
    def _write(run: LockedRun, number: int, which: int, who: dict[str, Any]) -> None:
        common: dict[str, Any] = {"run": run, "number": number, "data": {"n": which}, **who}
        if which == 0:
            undo.begin_compensation(**common)
        elif which == 1:
            undo.complete_compensation(read_back=ReadBack.UNVERIFIED, **common)
        elif which == 2:
            undo.fail_compensation(error="no", is_outcome_unknown=False, **common)
        elif which == 3:
            undo.record_read_back(mismatch="not so", **common)
        elif which == 4:
            undo.confirm_compensation(read_back=ReadBack.UNVERIFIED, note="so it is", **common)
        else:
            undo.compensate_by_hand(read_back=ReadBack.NOT_DECLARED, note="done", **common)

    @invariant()
    def rows_equal_the_fold_of_events(self) -> None:
        events = queries.list_events(self.run_id)
        rows = {step.number: step.state for step in queries.list_steps(self.run_id)}
        assert fold_states((event.kind, event.step) for event in events) == rows

    @invariant()
    def chain_verifies(self) -> None:
        assert queries.check_run_chain(self.run_id).problems == ()


@pytest.mark.timeout(300)
def test_journal_machine(db: Database) -> None:
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    run_state_machine_as_test(
        JournalMachine,
        settings=settings(max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=checks),
    )
