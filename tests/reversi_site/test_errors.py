from __future__ import annotations

import pytest
from django.db.utils import DatabaseError, IntegrityError, OperationalError

from ledger.core.errors import BadRunId, ForeignRun, OutcomeConflict, RunClosed, RunNotFound
from reversi_sdk.errors import EffectUncertainError, InvalidInput, ReversiError, ToolError
from reversi_site.database_url import DatabaseUrlInvalid
from reversi_site.errors import ExitCode, describe, exit_code
from reversi_site.store import StoreNotMigrated, StoreTooNew, StoreUnavailable

CASES = [
    (BadRunId("a/b"), ExitCode.USAGE),
    (InvalidInput("x"), ExitCode.REFUSED),
    (DatabaseUrlInvalid("x"), ExitCode.REFUSED),
    (RunNotFound("r"), ExitCode.REFUSED),
    (ForeignRun("r"), ExitCode.REFUSED),
    (RunClosed("r"), ExitCode.REFUSED),
    (OutcomeConflict("r", 0, "succeeded", "failed", is_disputed=False), ExitCode.REFUSED),
    (StoreTooNew(["ledger.0099_later"]), ExitCode.REFUSED),
    (ToolError("x"), ExitCode.REFUSED),
    (EffectUncertainError("x"), ExitCode.INCOMPLETE),
    (StoreUnavailable("x"), ExitCode.UNAVAILABLE),
    (StoreNotMigrated(["ledger.0001_initial"]), ExitCode.UNAVAILABLE),
    (OperationalError("database is locked"), ExitCode.UNAVAILABLE),
    (DatabaseError("file is not a database"), ExitCode.UNAVAILABLE),
    (IntegrityError("UNIQUE constraint failed"), ExitCode.INTERNAL),
    (ReversiError("x"), ExitCode.INTERNAL),
    (KeyError("x"), ExitCode.INTERNAL),
]


@pytest.mark.parametrize(("error", "code"), CASES, ids=lambda value: type(value).__name__)
def test_exit_code_comes_from_the_most_special_class(error: BaseException, code: ExitCode) -> None:
    assert exit_code(error) is code


def test_describe_says_what_to_do_about_an_undeclared_error() -> None:
    text = describe(KeyError("actor"))

    assert text.startswith("internal error: KeyError: 'actor'")
    assert "REVERSI_DEBUG=1" in text


def test_describe_says_where_else_a_run_may_be() -> None:
    text = describe(RunNotFound("r"))

    assert text.startswith("no run r; ")
    assert "reversi --data" in text


def test_describe_puts_a_database_message_on_one_line() -> None:
    assert "\n" not in describe(OperationalError("connection failed\nIs the server running?\n"))


def test_describe_keeps_the_lines_of_an_error_that_lists_problems() -> None:
    assert describe(InvalidInput("a.yaml:1: x\nb.yaml:2: y")) == "a.yaml:1: x\nb.yaml:2: y"
